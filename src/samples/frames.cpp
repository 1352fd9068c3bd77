#include "samples/frames.hpp"

#include <algorithm>
#include <thread>

namespace blockyard::samples {

/// One thread's share. Sums of the frames that are open lie side by side in the cache, and go to their frame when it
/// ends.
class FrameSums::Worker {
 public:
  Worker(const std::vector<Cut>& cuts, std::size_t runs) : cuts_(cuts), runs_(runs), sums_(cuts.size()) {
    for (std::size_t c = 0; c < cuts.size(); ++c) {
      const std::size_t frames = cuts[c].frames();
      sums_[c].events.resize(frames);
      sums_[c].as_run.assign(runs, std::vector<std::uint64_t>(frames));
      sums_[c].attributed.assign(runs, std::vector<std::uint64_t>(frames));
      sums_[c].inherent.resize(frames);
      open_.emplace_back(runs);
    }
  }

  void pass(std::span<const Run> runs, std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return;
    for (std::size_t c = 0; c < cuts_.size(); ++c) open_[c].next = next_edge(cuts_[c], runs[0].rows[begin].event);
    std::vector<Open*> of_row(cuts_.size());
    for (std::uint64_t i = begin; i < end; ++i) {
      const Row& first = runs[0].rows[i];
      std::size_t counted = 0;
      for (std::size_t c = 0; c < cuts_.size(); ++c) {
        const Cut& cut = cuts_[c];
        if (cut.thread != Cut::all_threads && cut.thread != first.thread) continue;
        Open& open = open_[c];
        if (open.next < cut.edges.size() && first.event >= cut.edges[open.next]) {
          close(c);
          while (open.next < cut.edges.size() && first.event >= cut.edges[open.next]) ++open.next;
        }
        // 0 is before the first frame, and the last edge ends the last one.
        if (open.next != 0 && open.next < cut.edges.size()) of_row[counted++] = &open;
      }
      if (counted != 0) add(runs, i, std::span(of_row.data(), counted));
    }
    for (std::size_t c = 0; c < cuts_.size(); ++c) close(c);
  }

  [[nodiscard]] const FrameTimes& sums(std::size_t cut) const { return sums_[cut]; }

 private:
  struct RunSum {
    std::uint64_t as_run = 0;
    std::uint64_t attributed = 0;
  };
  /// The frame that a cut is in.
  struct Open {
    explicit Open(std::size_t runs) : by_run(runs) {}
    std::size_t next = 0;  ///< the first edge behind it
    std::uint32_t events = 0;
    std::uint64_t inherent = 0;
    std::vector<RunSum> by_run;
  };

  static std::size_t next_edge(const Cut& cut, std::uint32_t event) {
    return static_cast<std::size_t>(std::upper_bound(cut.edges.begin(), cut.edges.end(), event) - cut.edges.begin());
  }

  static void add(std::span<const Run> runs, std::uint64_t i, std::span<Open* const> frames) {
    std::uint32_t least = saturated;
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const Row& row = runs[r].rows[i];
      const std::uint32_t ticks = latency(row, runs[r]).both;
      least = std::min(least, ticks);
      const std::uint32_t own = (row.cause & cause_machine) != 0 ? 0 : ticks;
      for (Open* const frame : frames) {
        frame->by_run[r].as_run += ticks;
        frame->by_run[r].attributed += own;
      }
    }
    for (Open* const frame : frames) {
      ++frame->events;
      frame->inherent += least;
    }
  }

  void close(std::size_t c) {
    Open& open = open_[c];
    if (open.events == 0) return;
    const std::size_t frame = open.next - 1;
    sums_[c].events[frame] += open.events;
    sums_[c].inherent[frame] += open.inherent;
    for (std::size_t r = 0; r < runs_; ++r) {
      sums_[c].as_run[r][frame] += open.by_run[r].as_run;
      sums_[c].attributed[r][frame] += open.by_run[r].attributed;
      open.by_run[r] = {};
    }
    open.events = 0;
    open.inherent = 0;
  }

  const std::vector<Cut>& cuts_;
  std::size_t runs_;
  std::vector<Open> open_;
  std::vector<FrameTimes> sums_;
};

FrameSums::FrameSums(std::vector<Cut> cuts, std::size_t runs, std::size_t threads)
    : cuts_(std::move(cuts)), runs_(runs) {
  for (std::size_t i = 0; i < std::clamp<std::size_t>(threads, 1, max_threads); ++i) {
    workers_.push_back(std::make_unique<Worker>(cuts_, runs_));
  }
}

FrameSums::~FrameSums() = default;

void FrameSums::feed(std::span<const Run> runs, std::uint64_t rows) {
  if (runs.size() != runs_ || rows == 0) return;
  const std::size_t shares = rows < 4096 ? 1 : workers_.size();
  const auto work = [&](std::size_t share) {
    workers_[share]->pass(runs, rows * share / shares, rows * (share + 1) / shares);
  };
  std::vector<std::jthread> helpers;
  for (std::size_t share = 1; share < shares; ++share) helpers.emplace_back(work, share);
  work(0);
}

FrameTimes FrameSums::times(std::size_t cut) const {
  FrameTimes total = workers_[0]->sums(cut);
  const auto join = [](auto& into, const auto& other) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] += other[i];
  };
  for (std::size_t w = 1; w < workers_.size(); ++w) {
    const FrameTimes& share = workers_[w]->sums(cut);
    join(total.events, share.events);
    join(total.inherent, share.inherent);
    for (std::size_t r = 0; r < runs_; ++r) {
      join(total.as_run[r], share.as_run[r]);
      join(total.attributed[r], share.attributed[r]);
    }
  }
  return total;
}

}  // namespace blockyard::samples
