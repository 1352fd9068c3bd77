// What the report's page draws and counts from: latency histograms of short stretches of time, without some single
// events that it shows one by one. Histograms of neighbouring stretches add up, so one structure gives both the density
// at every zoom and the percentiles of any stretch.
#include <algorithm>
#include <new>
#include <span>
#include <vector>

#include "samples/latency.hpp"
#include "samples/shares.hpp"

namespace blockyard::samples {

namespace {

/// Latencies below this find their bin in a table; above, a logarithm is affordable.
constexpr std::uint32_t tabled = 1U << 16;
constexpr std::size_t planes = 8;  // see by_samples_tile() in samples.h

class Bins {
 public:
  explicit Bins(const by_samples_tile_frame& frame) : frame_(frame), table_(tabled) {
    for (std::uint32_t ticks = 0; ticks < tabled; ++ticks) table_[ticks] = computed(ticks);
  }

  std::uint32_t operator()(std::uint32_t ticks) const { return ticks < tabled ? table_[ticks] : computed(ticks); }

 private:
  std::uint32_t computed(std::uint32_t ticks) const {
    if (ticks == 0) return 0;
    const double octaves = std::log2(std::max(ticks / frame_.ticks_per_ns, 1.0));
    return std::min(1 + static_cast<std::uint32_t>(octaves * frame_.per_octave), frame_.bins - 1);
  }

  const by_samples_tile_frame& frame_;
  std::vector<std::uint32_t> table_;
};

class Worker {
 public:
  Worker(const by_samples_tile_frame& frame, const Bins& bins, std::uint32_t* counts)
      : frame_(frame),
        bins_(bins),
        per_ns_(frame.end_ns > frame.begin_ns ? frame.columns / (frame.end_ns - frame.begin_ns) : 0),
        counts_(counts),
        cells_(std::size_t{frame.columns} * frame.bins) {}

  /// Rows [begin, end) without those in `single`, the first of which is not below `begin`.
  void pass(std::span<const Run> runs, std::uint64_t begin, std::uint64_t end, std::span<const std::uint64_t> single) {
    auto next = single.begin();
    for (std::uint64_t i = begin; i < end; ++i) {
      if (next != single.end() && *next == i) {
        ++next;
        continue;
      }
      count(runs, i);
    }
  }

 private:
  void count(std::span<const Run> runs, std::uint64_t i) {
    const Row& first = row_of(runs[0], i);
    const std::size_t frees = first.kind == kind_free;
    const std::size_t cell = column(first.start) * frame_.bins;
    std::uint32_t least = saturated;
    std::size_t struck = 0;
    for (const Run& run : runs) {
      const Row& row = row_of(run, i);
      const std::uint32_t ticks = latency(row, run).both;
      const std::size_t bin = bins_(ticks);
      ++at(frees, cell + bin);
      if (by_machine(row)) [[unlikely]] {
        ++at(2 + frees, cell + bin);
        ++struck;
      }
      least = std::min(least, ticks);
    }
    if (runs.size() != 1) ++at(4 + frees, cell + bins_(least));
    if (returns(struck, runs.size())) [[unlikely]]
      at(6 + frees, cell + bins_(least)) += static_cast<std::uint32_t>(runs.size());
  }

  std::uint32_t& at(std::size_t plane, std::size_t cell) { return counts_[plane * cells_ + cell]; }

  std::size_t column(std::uint64_t start) const {
    const double across = (static_cast<double>(start) - frame_.begin_ns) * per_ns_;
    return static_cast<std::size_t>(std::clamp(across, 0.0, frame_.columns - 1.0));
  }

  const by_samples_tile_frame& frame_;
  const Bins& bins_;
  double per_ns_;
  std::uint32_t* counts_;
  std::size_t cells_;
};

}  // namespace
}  // namespace blockyard::samples

using namespace blockyard::samples;

int by_samples_tile(const by_samples_run* runs, std::uint32_t run_count, std::uint64_t rows,
                    const by_samples_tile_frame* frame, const std::uint64_t* single, std::size_t single_count,
                    std::uint32_t threads, std::uint32_t* counts, std::uint32_t* latencies) try {
  const std::span all(runs, run_count);
  const std::span singles(single, single_count);
  const Bins bins(*frame);
  const std::size_t shares = shares_of(rows, threads);
  const std::size_t cells = std::size_t{frame->columns} * frame->bins;
  std::vector<std::uint32_t> others[max_threads];  // of all shares but the first
  for_each_share(rows, shares, [&](std::size_t share, std::uint64_t begin, std::uint64_t end) {
    if (share != 0) others[share].resize(planes * cells);
    const auto mine = std::lower_bound(singles.begin(), singles.end(), begin);
    if (!all.empty()) {
      Worker(*frame, bins, share == 0 ? counts : others[share].data()).pass(all, begin, end, {mine, singles.end()});
    }
  });
  for (const auto& other : others) {
    for (std::size_t cell = 0; cell < other.size(); ++cell) counts[cell] += other[cell];
  }
  if (all.size() == 1) std::copy_n(counts, 2 * cells, counts + 4 * cells);  // a lone run is its own minimum
  for (const std::uint64_t row : singles) {
    for (const Run& run : all) *latencies++ = latency(row_of(run, row), run).both;
  }
  return 0;
} catch (const std::bad_alloc&) {
  return 1;
}
