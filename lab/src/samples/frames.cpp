#include "samples/frames.hpp"

#include <algorithm>
#include <array>

#include "samples/shares.hpp"

namespace blockyard::samples {

namespace {

/// So many rows are summed at a time: their columns and the latencies of one run stay in the first-level cache.
constexpr std::size_t block_rows = 1024;

/// Rows [begin, end) of a block that lie in one frame of a cut.
struct Stretch {
  std::size_t frame;
  std::size_t begin;
  std::size_t end;
};

/// Has no branch on the thread, which would be mispredicted at every other row.
std::uint64_t sum(const std::uint32_t* values, const std::uint32_t* mask, const Stretch& stretch) {
  std::uint64_t total = 0;
  for (std::size_t k = stretch.begin; k < stretch.end; ++k) total += values[k] & mask[k];
  return total;
}

}  // namespace

/// One thread's share, block by block: the frame of each row is found once, for all runs.
class FrameSums::Worker {
 public:
  Worker(const std::vector<Cut>& cuts, std::size_t runs) : cuts_(cuts), sums_(cuts.size()), parts_(cuts.size()) {
    for (std::size_t c = 0; c < cuts.size(); ++c) {
      const std::size_t frames = cuts[c].frames();
      sums_[c].events.resize(frames);
      sums_[c].as_run.assign(runs, std::vector<std::uint64_t>(frames));
      sums_[c].attributed.assign(runs, std::vector<std::uint64_t>(frames));
      sums_[c].inherent.resize(frames);
    }
  }

  void pass(std::span<const Run> runs, std::uint64_t begin, std::uint64_t end) {
    for (Part& part : parts_) part.next = 0;
    for (std::uint64_t i = begin; i < end; i += block_rows) add(runs, i, std::min<std::uint64_t>(end - i, block_rows));
  }

  [[nodiscard]] const FrameTimes& sums(std::size_t cut) const { return sums_[cut]; }

 private:
  using Column = std::array<std::uint32_t, block_rows>;

  /// What a block holds of one cut.
  struct Part {
    std::size_t next = 0;  ///< the first edge after the last event
    Column mask{};         ///< all ones where the row's thread counts
    std::vector<Stretch> stretches;
  };

  void add(std::span<const Run> runs, std::uint64_t first, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) event_[k] = runs[0].rows[first + k].event;
    for (std::size_t c = 0; c < cuts_.size(); ++c) divide(cuts_[c], parts_[c], runs[0].rows + first, count);
    least_.fill(saturated);
    struck_.fill(~std::uint32_t{0});
    for (std::size_t r = 0; r < runs.size(); ++r) {
      for (std::size_t k = 0; k < count; ++k) {
        const Row& row = runs[r].rows[first + k];
        ticks_[k] = latency(row, runs[r]).both;
        const std::uint32_t struck = by_machine(row) ? ~std::uint32_t{0} : 0;
        own_[k] = ticks_[k] & ~struck;
        struck_[k] &= struck;
        least_[k] = std::min(least_[k], ticks_[k]);
      }
      for (std::size_t c = 0; c < cuts_.size(); ++c) {
        for (const Stretch& stretch : parts_[c].stretches) {
          sums_[c].as_run[r][stretch.frame] += sum(ticks_.data(), parts_[c].mask.data(), stretch);
          sums_[c].attributed[r][stretch.frame] += sum(own_.data(), parts_[c].mask.data(), stretch);
        }
      }
    }
    if (runs.size() > 1) add_returned(runs.size(), count);
    for (std::size_t c = 0; c < cuts_.size(); ++c) {
      for (const Stretch& stretch : parts_[c].stretches) {
        sums_[c].inherent[stretch.frame] += sum(least_.data(), parts_[c].mask.data(), stretch);
        sums_[c].events[stretch.frame] +=
            static_cast<std::uint32_t>(sum(ones().data(), parts_[c].mask.data(), stretch));
      }
    }
  }

  /// What the machine interrupted in every run counts with its minimum in each run; most blocks have no such event.
  void add_returned(std::size_t runs, std::size_t count) {
    std::uint32_t any = 0;
    for (std::size_t k = 0; k < count; ++k) any |= own_[k] = least_[k] & struck_[k];
    if (any == 0) return;
    for (std::size_t c = 0; c < cuts_.size(); ++c) {
      for (const Stretch& stretch : parts_[c].stretches) {
        const std::uint64_t ticks = sum(own_.data(), parts_[c].mask.data(), stretch);
        for (std::size_t r = 0; r < runs; ++r) sums_[c].attributed[r][stretch.frame] += ticks;
      }
    }
  }

  /// Finds the part's stretches and the rows that count. Events rise from row to row, and edges from block to block.
  void divide(const Cut& cut, Part& part, const Row* rows, std::size_t count) const {
    for (std::size_t k = 0; k < count; ++k) {
      part.mask[k] = cut.thread == Cut::all_threads || cut.thread == rows[k].thread ? ~std::uint32_t{0} : 0;
    }
    part.stretches.clear();
    for (std::size_t k = 0; k < count;) {
      if (part.next == 0) {
        part.next = static_cast<std::size_t>(std::upper_bound(cut.edges.begin(), cut.edges.end(), event_[k]) -
                                             cut.edges.begin());
      }
      while (part.next < cut.edges.size() && cut.edges[part.next] <= event_[k]) ++part.next;
      if (part.next == cut.edges.size()) break;  // after the last frame
      const auto* const behind = std::lower_bound(event_.data() + k, event_.data() + count, cut.edges[part.next]);
      const auto end = static_cast<std::size_t>(behind - event_.data());
      if (part.next != 0) part.stretches.push_back({part.next - 1, k, end});
      k = end;
    }
  }

  static const Column& ones() {
    static const Column all = [] {
      Column made{};
      made.fill(1);
      return made;
    }();
    return all;
  }

  const std::vector<Cut>& cuts_;
  std::vector<FrameTimes> sums_;
  std::vector<Part> parts_;
  Column event_{};
  Column ticks_{};
  Column own_{};
  Column least_{};
  Column struck_{};  ///< all ones where the machine interrupted the row in every run so far
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
  for_each_share(
      rows, shares_of(rows, workers_.size()),
      [&](std::size_t share, std::uint64_t begin, std::uint64_t end) { workers_[share]->pass(runs, begin, end); });
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
