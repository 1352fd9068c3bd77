#include <string>

#include "journal/flat_map.hpp"
#include "journal/frame_marks.hpp"
#include "journal/json_text.hpp"
#include "journal/reader.hpp"
#include "sites/export.hpp"

namespace blockyard::sites {
namespace {

using journal::Event;
using journal::Json;
using journal::Kind;

constexpr int process = 1;
/// A time line of counters needs no more points: Perfetto draws a millisecond in a pixel when it shows a second.
constexpr std::uint64_t counter_step_ns = 1'000'000;

double microseconds(std::uint64_t ns) { return static_cast<double>(ns) / 1e3; }

class Trace {
 public:
  explicit Trace(journal::ByteSink& out) : out_(out) { out_.write(R"({"displayTimeUnit":"ms","traceEvents":[)"); }
  void add(const Json& event) {
    out_.write((first_ ? "\n" : ",\n") + journal::json_text(event, -1));
    first_ = false;
  }
  void finish() { out_.write("\n]}\n"); }

 private:
  journal::ByteSink& out_;
  bool first_ = true;
};

struct Counts {
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  std::uint64_t bytes = 0;
};

class TimeLine {
 public:
  TimeLine(Trace& trace, const journal::Header& header, std::uint32_t frame_thread)
      : trace_(trace), header_(header), frame_thread_(frame_thread) {}

  void add(const Event& event, bool preamble, bool shown) {
    if (takes_block(event.kind)) release(ended_block(event));
    if (gives_block(event.kind)) {
      live_.insert(event.block + 1, event.size);
      live_bytes_ += event.size;
    }
    if (preamble || !shown) return;
    for (Counts* counts : {&step_, &frame_}) {
      if (counts == &frame_ && event.thread != frame_thread_) continue;
      if (takes_block(event.kind)) ++counts->frees;
      if (gives_block(event.kind)) {
        ++counts->allocations;
        counts->bytes += event.size;
      }
    }
    if (event.kind == Kind::frame_mark && event.thread == frame_thread_) mark(event);
    if (event.kind == Kind::phase_mark) phase(event);
    if (event.time_ns >= next_ns_) count(event.time_ns);
    last_ns_ = event.time_ns;
  }
  void finish() { count(last_ns_); }

 private:
  std::uint64_t id_of(std::uint32_t thread) const { return header_.threads[thread].id; }

  void release(std::uint64_t block) {
    std::uint64_t size = 0;
    if (live_.take(block + 1, size)) live_bytes_ -= size;
  }

  void mark(const Event& event) {
    if (frames_++ != 0) {
      trace_.add({{"ph", "X"},
                  {"pid", process},
                  {"tid", id_of(event.thread)},
                  {"name", "frame " + std::to_string(frames_ - 1)},
                  {"ts", microseconds(frame_began_ns_)},
                  {"dur", microseconds(event.time_ns - frame_began_ns_)},
                  {"args", {{"allocations", frame_.allocations}, {"frees", frame_.frees}, {"bytes", frame_.bytes}}}});
    }
    frame_began_ns_ = event.time_ns;
    frame_ = {};
  }

  void phase(const Event& event) {
    trace_.add({{"ph", "i"},
                {"s", "g"},
                {"pid", process},
                {"tid", id_of(event.thread)},
                {"name", header_.names[event.tag]},
                {"ts", microseconds(event.time_ns)}});
  }

  void count(std::uint64_t now_ns) {
    const auto counter = [&](const char* name, Json args) {
      trace_.add(
          {{"ph", "C"}, {"pid", process}, {"name", name}, {"ts", microseconds(now_ns)}, {"args", std::move(args)}});
    };
    counter("memory", {{"bytes", live_bytes_}});
    counter("blocks", {{"alive", live_.size()}});
    counter("calls per ms", {{"allocations", step_.allocations}, {"frees", step_.frees}});
    step_ = {};
    next_ns_ = now_ns + counter_step_ns;
  }

  Trace& trace_;
  const journal::Header& header_;
  std::uint32_t frame_thread_;
  journal::FlatMap<std::uint64_t> live_;  ///< block + 1 -> bytes
  std::uint64_t live_bytes_ = 0;
  std::uint64_t next_ns_ = 0;
  std::uint64_t last_ns_ = 0;
  std::uint64_t frames_ = 0;
  std::uint64_t frame_began_ns_ = 0;
  Counts step_;
  Counts frame_;
};

}  // namespace

void write_trace(const std::string& path, const Options& options, journal::ByteSink& out,
                 const journal::Progress& progress) {
  auto source = journal::open(path);
  journal::FrameMarks marks;
  journal::for_each_event(*source, {}, [&marks](const Event& event) { marks.add(event); });
  const journal::Header header = source->header();
  Trace trace(out);
  trace.add({{"ph", "M"}, {"pid", process}, {"name", "process_name"}, {"args", {{"name", header.program}}}});
  for (const journal::Thread& thread : header.threads) {
    if (thread.name.empty()) continue;
    trace.add({{"ph", "M"},
               {"pid", process},
               {"tid", thread.id},
               {"name", "thread_name"},
               {"args", {{"name", thread.name}}}});
  }
  TimeLine line(trace, header, marks.most().first);
  source = journal::open(path);
  std::uint64_t number = 0;
  journal::for_each_event(*source, progress, [&](const Event& event) {
    if (event.time_ns >= options.to_ns) return false;
    line.add(event, number++ < header.preamble_events, event.time_ns >= options.from_ns);
    return true;
  });
  line.finish();
  trace.finish();
}

}  // namespace blockyard::sites
