// What reading and writing journals costs. Each figure has a peer measured in the same run: counting the lines of a
// text, and copying the events' memory. bench/journal/run calls it; BENCH_TEXT is the text it made, BENCH_LOGS
// the folder of other forms' logs, BENCH_JOURNAL a real journal.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "journal/input.hpp"
#include "journal/reader.hpp"
#include "journal/writer.hpp"
#include "made_logs.hpp"

namespace {

namespace journal = blockyard::journal;

std::string environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread starts
  return value == nullptr ? std::string() : value;
}

std::uint64_t read_all(const std::string& path) {
  const auto source = journal::open(path);
  std::uint64_t count = 0;
  for (auto events = source->next(); !events.empty(); events = source->next()) count += events.size();
  return count;
}

void report(benchmark::State& state, std::uint64_t events, const std::string& path) {
  state.counters["events"] = static_cast<double>(events);
  state.counters["ns_an_event"] = benchmark::Counter(
      static_cast<double>(events) / 1e9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(std::filesystem::file_size(path)));
}

/// The peer of reading text: bytes in, newlines counted.
void count_lines(benchmark::State& state, const std::string& path) {
  std::vector<char> buffer(1U << 20);
  std::uint64_t lines = 0;
  for (auto _ : state) {
    lines = 0;
    const auto input = journal::open_input(path);
    while (const std::size_t got = input->read(buffer)) {
      const char* at = buffer.data();
      const char* const end = at + got;
      while ((at = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)))) != nullptr) {
        ++lines;
        if (++at == end) break;
      }
    }
  }
  report(state, lines, path);
}

void read_journal(benchmark::State& state, const std::string& path) {
  std::uint64_t events = 0;
  for (auto _ : state) events = read_all(path);
  report(state, events, path);
}

void write_journal(benchmark::State& state, const std::string& path) {
  const auto source = journal::open(path);
  std::vector<journal::Event> all;
  for (auto events = source->next(); !events.empty(); events = source->next()) {
    all.insert(all.end(), events.begin(), events.end());
  }
  const std::string output =
      (std::filesystem::temp_directory_path() / ("bench-" + std::to_string(::getpid()) + ".byj")).string();
  for (auto _ : state) {
    journal::Header header = source->header();
    header.has_addresses = false;
    journal::Writer writer(output, header, true);
    for (const auto& event : all) writer.add(event);
    writer.finish();
  }
  report(state, all.size(), output);
  state.counters["bytes_an_event"] =
      static_cast<double>(std::filesystem::file_size(output)) / static_cast<double>(all.size());
  std::filesystem::remove(output);
}

}  // namespace

int main(int argc, char** argv) {
  // bench_journal --make-log FORM FILE LINES JOURNAL...: what the other runs measure.
  if (argc > 5 && std::string_view(argv[1]) == "--make-log") {
    blockyard::bench::write_log(argv[2], argv[3], {argv + 5, argv + argc}, std::strtoull(argv[4], nullptr, 10));
    return 0;
  }
  if (argc > 1 && std::string_view(argv[1]) == "--forms") {
    for (const auto form : blockyard::bench::made_forms()) std::printf("%s\n", std::string(form).c_str());
    return 0;
  }
  const std::string text = environment("BENCH_TEXT");
  const std::string real = environment("BENCH_JOURNAL");
  const std::string byj = environment("BENCH_BYJ");
  const std::string logs = environment("BENCH_LOGS");
  const auto add = [](const std::string& name, auto function, const std::string& path) {
    if (path.empty()) return;
    benchmark::RegisterBenchmark(name.c_str(), [function, path](benchmark::State& state) { function(state, path); })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  };
  add("text: count lines", count_lines, text);
  add("text: parse and resolve", read_journal, text);
  for (const auto form : blockyard::bench::made_forms().subspan(1)) {
    if (!logs.empty()) add("log: " + std::string(form), read_journal, logs + "/" + std::string(form) + ".log");
  }
  add("byj: write", write_journal, real);
  add("byj: read", read_journal, byj);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
