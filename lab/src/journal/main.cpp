// blockyard-journal: info, check, cut, convert and repeat on journals.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <string>

#include "journal/check.hpp"
#include "journal/convert.hpp"
#include "journal/cut.hpp"
#include "journal/facts.hpp"
#include "journal/repeat.hpp"

namespace {

namespace journal = blockyard::journal;
using Json = nlohmann::ordered_json;

constexpr int bad_input = 1;
constexpr int wrong_usage = 2;

struct Options {
  std::string input;
  std::string output;
  double from_s = 0;
  double to_s = -1;
  std::uint64_t times = 1;
  bool json = false;
  bool progress = false;
  journal::ConvertOptions convert;
};

journal::Progress progress_of(const Options& options, const char* text) {
  if (!options.progress) return {};
  auto last = std::chrono::steady_clock::time_point();
  return [text, last](double fraction) mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now - last < std::chrono::milliseconds(100)) return;
    last = now;
    std::fprintf(stderr, "progress %.4f %s\n", fraction, text);
  };
}

std::string dump(const Json& json) {
  constexpr int indent = 2;
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

void print(const std::string& text) {
  if (std::fputs((text + "\n").c_str(), stdout) == EOF || std::fflush(stdout) != 0) {
    throw journal::Error("the result can't be written to standard output");
  }
}

// Paths and values, one per line: the JSON for people.
void flatten(const Json& json, const std::string& path, std::string& out) {
  if (json.is_structured() && !json.empty()) {
    for (const auto& [key, value] : json.items()) {
      std::string below = path;
      if (!below.empty()) below += '.';
      flatten(value, below + key, out);
    }
    return;
  }
  out += path + ": " + (json.is_string() ? json.get<std::string>() : json.dump()) + "\n";
}

void show(const Json& json, const Options& options) {
  if (options.json) {
    print(dump(json));
    return;
  }
  std::string text;
  flatten(json, "", text);
  if (!text.empty()) text.pop_back();
  print(text);
}

Json outcome_of(const journal::Outcome& outcome, const Options& options) {
  return {{"output", options.output},          {"events", outcome.events}, {"preamble_events", outcome.preamble_events},
          {"joined_reallocs", outcome.joined}, {"bytes", outcome.bytes},   {"notes", outcome.notes}};
}

void run_info(const Options& options) {
  show(Json::parse(journal::facts_json(journal::gather_facts(options.input, progress_of(options, "reading")))),
       options);
}

void run_check(const Options& options) {
  const journal::CheckResult result = journal::check(options.input, progress_of(options, "checking"));
  show({{"violations", 0},
        {"events", result.events},
        {"blocks_given", result.blocks_given},
        {"live_at_end", result.live_at_end},
        {"threads", result.threads},
        {"frame_marks", result.frame_marks},
        {"has_addresses", result.has_addresses},
        {"events_with_stack", result.events_with_stack},
        {"stacks", result.stacks},
        {"notes", result.notes}},
       options);
}

std::uint64_t nanoseconds(double seconds, const char* option) {
  constexpr double most_s = 9e9;  // 64 bits of nanoseconds
  if (!(seconds >= 0 && seconds <= most_s))
    throw journal::Error(std::string(option) + " must be a time of 0 s or later");
  return static_cast<std::uint64_t>(std::llround(seconds * 1e9));
}

void run_cut(const Options& options, bool has_to) {
  journal::CutOptions cut;
  cut.from_ns = nanoseconds(options.from_s, "--from");
  if (has_to) cut.to_ns = nanoseconds(options.to_s, "--to");
  cut.overwrite = options.convert.overwrite;
  show(outcome_of(journal::cut(options.input, options.output, cut, progress_of(options, "cutting")), options), options);
}

void run_convert(const Options& options) {
  show(outcome_of(journal::convert(options.input, options.output, options.convert, progress_of(options, "converting")),
                  options),
       options);
}

void run_repeat(const Options& options) {
  journal::RepeatOptions repeat;
  repeat.times = options.times;
  repeat.overwrite = options.convert.overwrite;
  show(outcome_of(journal::repeat(options.input, options.output, repeat, progress_of(options, "repeating")), options),
       options);
}

int run(int argc, char** argv) {
  CLI::App app("Facts about allocation journals, and other forms of them.", "blockyard-journal");
  app.require_subcommand(1);
  Options options;
  const auto common = [&options](CLI::App* command) {
    command->add_option("journal", options.input, "a .byj, a text journal (plain, .zst, .gz) or a heaptrack recording")
        ->required();
    command->add_flag("--json", options.json, "print JSON");
    command->add_flag("--progress", options.progress, "write lines 'progress FRACTION TEXT' to standard error");
  };
  const auto writes = [&options](CLI::App* command) {
    command
        ->add_option("-o,--output", options.output,
                     "where to write: .byj, or text (.txt, .journal, .log), compressed when .zst or .gz follows")
        ->required();
    command->add_flag("--force", options.convert.overwrite, "overwrite the output");
  };
  CLI::App* info = app.add_subcommand("info", "print what a journal holds");
  common(info);
  CLI::App* check = app.add_subcommand("check", "verify a journal: checksums, order, blocks, addresses, footer");
  common(check);
  CLI::App* cut = app.add_subcommand("cut", "write a stretch of a journal with its preamble");
  common(cut);
  writes(cut);
  cut->add_option("--from", options.from_s, "seconds since the journal's start")->capture_default_str();
  CLI::Option* to = cut->add_option("--to", options.to_s, "seconds since the journal's start; its end when left out");
  CLI::App* convert = app.add_subcommand("convert", "write a journal in another form");
  common(convert);
  writes(convert);
  convert->add_flag("--plain", options.convert.plain, "text: leave out the # lines that say what the form can't");
  convert->add_flag("--join-realloc", options.convert.join_realloc,
                    "a free and an allocation of the same instant and thread become one realloc");
  convert->add_flag("--anonymous", options.convert.anonymous,
                    "leave out the program, its arguments and paths, and number all names");
  convert->add_flag("--addresses", options.convert.addresses, "keep the program's pointers in a .byj");
  CLI::App* repeat = app.add_subcommand("repeat", "write a journal several times over, as one long journal");
  common(repeat);
  repeat->add_option("times", options.times, "repetitions in all")->required()->check(CLI::Range(1, 1'000'000));
  writes(repeat);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : wrong_usage;
  }
  if (info->parsed()) run_info(options);
  if (check->parsed()) run_check(options);
  if (cut->parsed()) run_cut(options, to->count() != 0);
  if (convert->parsed()) run_convert(options);
  if (repeat->parsed()) run_repeat(options);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // A file that grows beyond its limit is then a failed write with a sentence, and its temporary file is removed.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return run(argc, argv);
  } catch (const journal::Error& error) {
    std::fprintf(stderr, "blockyard: %s\n", error.what());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "blockyard: not enough memory for the blocks that are alive in this journal\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "blockyard: %s\n", error.what());
  }
  return bad_input;
}
