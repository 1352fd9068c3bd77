// Allocator time in each frame of one thread: sums over stretches of the journal that are given by event numbers, so
// that a frame has the same events in every repeat and on every allocator. Memory: 8 bytes per frame, run, view and
// thread.
#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "samples/latency.hpp"
#include "samples/shares.hpp"

namespace blockyard::samples {

namespace {

/// So many rows are summed at a time: their columns and the latencies of one run stay in the first-level cache.
constexpr std::size_t block_rows = 1024;
constexpr std::uint32_t all_threads = std::numeric_limits<std::uint32_t>::max();

std::size_t frames_of(const by_samples_cut& cut) { return std::max<std::size_t>(cut.edge_count, 1) - 1; }

/// What the frames of one cut took, laid out as in the cut.
struct Sums {
  Sums(std::size_t frames, std::size_t runs)
      : events(frames), as_run(runs * frames), attributed(runs * frames), inherent(frames) {}

  std::vector<std::uint32_t> events;
  std::vector<std::uint64_t> as_run;
  std::vector<std::uint64_t> attributed;
  std::vector<std::uint64_t> inherent;
};

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

/// One thread's share, block by block: the frame of each row is found once, for all runs.
class Worker {
 public:
  Worker(std::span<const by_samples_cut> cuts, std::size_t runs) : cuts_(cuts), parts_(cuts.size()) {
    for (const by_samples_cut& cut : cuts) sums_.emplace_back(frames_of(cut), runs);
  }

  void pass(std::span<const Run> runs, std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; i += block_rows) add(runs, i, std::min<std::uint64_t>(end - i, block_rows));
  }

  [[nodiscard]] const Sums& sums(std::size_t cut) const { return sums_[cut]; }

 private:
  using Column = std::array<std::uint32_t, block_rows>;

  /// What a block holds of one cut.
  struct Part {
    std::size_t next = 0;  ///< the first edge after the last event
    Column mask{};         ///< all ones where the row's thread counts
    std::vector<Stretch> stretches;
  };

  void add(std::span<const Run> runs, std::uint64_t first, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) event_[k] = row_of(runs[0], first + k).event;
    for (std::size_t c = 0; c < cuts_.size(); ++c) divide(cuts_[c], parts_[c], &row_of(runs[0], first), count);
    least_.fill(saturated);
    struck_.fill(~std::uint32_t{0});
    for (std::size_t r = 0; r < runs.size(); ++r) {
      for (std::size_t k = 0; k < count; ++k) {
        const Row& row = row_of(runs[r], first + k);
        ticks_[k] = latency(row, runs[r]).both;
        const std::uint32_t struck = by_machine(row) ? ~std::uint32_t{0} : 0;
        own_[k] = ticks_[k] & ~struck;
        struck_[k] &= struck;
        least_[k] = std::min(least_[k], ticks_[k]);
      }
      for (std::size_t c = 0; c < cuts_.size(); ++c) {
        const std::size_t place = r * frames_of(cuts_[c]);
        for (const Stretch& stretch : parts_[c].stretches) {
          sums_[c].as_run[place + stretch.frame] += sum(ticks_.data(), parts_[c].mask.data(), stretch);
          sums_[c].attributed[place + stretch.frame] += sum(own_.data(), parts_[c].mask.data(), stretch);
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
        for (std::size_t r = 0; r < runs; ++r) sums_[c].attributed[r * frames_of(cuts_[c]) + stretch.frame] += ticks;
      }
    }
  }

  /// Finds the part's stretches and the rows that count. Events rise from row to row, and edges from block to block.
  void divide(const by_samples_cut& cut, Part& part, const Row* rows, std::size_t count) const {
    for (std::size_t k = 0; k < count; ++k) {
      part.mask[k] = cut.thread == all_threads || cut.thread == rows[k].thread ? ~std::uint32_t{0} : 0;
    }
    part.stretches.clear();
    for (std::size_t k = 0; k < count;) {
      if (part.next == 0) {
        part.next =
            static_cast<std::size_t>(std::upper_bound(cut.edges, cut.edges + cut.edge_count, event_[k]) - cut.edges);
      }
      while (part.next < cut.edge_count && cut.edges[part.next] <= event_[k]) ++part.next;
      if (part.next == cut.edge_count) break;  // after the last frame
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

  std::span<const by_samples_cut> cuts_;
  std::vector<Sums> sums_;
  std::vector<Part> parts_;
  Column event_{};
  Column ticks_{};
  Column own_{};
  Column least_{};
  Column struck_{};  ///< all ones where the machine interrupted the row in every run so far
};

template <typename Value>
void add_to(Value* into, const std::vector<Value>& more) {
  for (std::size_t i = 0; i < more.size(); ++i) into[i] += more[i];
}

}  // namespace
}  // namespace blockyard::samples

using namespace blockyard::samples;

int by_samples_frame_times(const by_samples_run* runs, std::uint32_t run_count, std::uint64_t rows,
                           const by_samples_cut* cuts, std::uint32_t cut_count, std::uint32_t threads) try {
  const std::size_t shares = shares_of(rows, threads);
  std::vector<std::unique_ptr<Worker>> workers(shares);
  for_each_share(rows, shares, [&](std::size_t share, std::uint64_t begin, std::uint64_t end) {
    workers[share] = std::make_unique<Worker>(std::span(cuts, cut_count), run_count);
    workers[share]->pass({runs, run_count}, begin, end);
  });
  for (const auto& worker : workers) {
    for (std::size_t c = 0; c < cut_count; ++c) {
      const Sums& sums = worker->sums(c);
      add_to(cuts[c].events, sums.events);
      add_to(cuts[c].as_run, sums.as_run);
      add_to(cuts[c].attributed, sums.attributed);
      add_to(cuts[c].inherent, sums.inherent);
    }
  }
  return 0;
} catch (const std::bad_alloc&) {
  return 1;
}
