#include "samples/frames.hpp"

#include <algorithm>
#include <thread>

namespace blockyard::samples {

class FrameSums::Worker {
 public:
  Worker(const std::vector<Cut>& cuts, std::size_t runs) : cuts_(cuts), at_(cuts.size()), sums_(cuts.size()) {
    for (std::size_t c = 0; c < cuts.size(); ++c) {
      const std::size_t frames = cuts[c].frames();
      sums_[c].events.resize(frames);
      sums_[c].as_run.assign(runs, std::vector<std::uint64_t>(frames));
      sums_[c].attributed.assign(runs, std::vector<std::uint64_t>(frames));
      sums_[c].inherent.resize(frames);
    }
  }

  void pass(std::span<const Run> runs, std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return;
    for (std::size_t c = 0; c < cuts_.size(); ++c) at_[c] = frame_of(cuts_[c], runs[0].rows[begin].event);
    std::vector<std::size_t> open(cuts_.size());
    for (std::uint64_t i = begin; i < end; ++i) {
      const Row& first = runs[0].rows[i];
      std::size_t opened = 0;
      for (std::size_t c = 0; c < cuts_.size(); ++c) {
        const Cut& cut = cuts_[c];
        if (cut.thread != Cut::all_threads && cut.thread != first.thread) continue;
        std::size_t& frame = at_[c];
        while (frame < cut.edges.size() && first.event >= cut.edges[frame]) ++frame;
        // `frame` is the first edge behind this event: 0 is before the first frame, the last edge ends the last frame.
        if (frame == 0 || frame >= cut.edges.size()) continue;
        open[opened++] = c;
      }
      if (opened != 0) add(runs, i, std::span(open.data(), opened));
    }
  }

  [[nodiscard]] const FrameTimes& sums(std::size_t cut) const { return sums_[cut]; }

 private:
  static std::size_t frame_of(const Cut& cut, std::uint32_t event) {
    return static_cast<std::size_t>(std::upper_bound(cut.edges.begin(), cut.edges.end(), event) - cut.edges.begin());
  }

  void add(std::span<const Run> runs, std::uint64_t i, std::span<const std::size_t> open) {
    std::uint32_t least = saturated;
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const Row& row = runs[r].rows[i];
      const std::uint32_t ticks = latency(row, runs[r]).both;
      least = std::min(least, ticks);
      const std::uint32_t own = (row.cause & cause_machine) != 0 ? 0 : ticks;
      for (const std::size_t c : open) {
        sums_[c].as_run[r][at_[c] - 1] += ticks;
        sums_[c].attributed[r][at_[c] - 1] += own;
      }
    }
    for (const std::size_t c : open) {
      ++sums_[c].events[at_[c] - 1];
      sums_[c].inherent[at_[c] - 1] += least;
    }
  }

  const std::vector<Cut>& cuts_;
  std::vector<std::size_t> at_;
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
