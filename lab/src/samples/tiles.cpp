#include "samples/tiles.hpp"

#include <algorithm>
#include <vector>

#include "samples/shares.hpp"

namespace blockyard::samples {

namespace {

/// Latencies below this find their bin in a table; above, a logarithm is affordable.
constexpr std::uint32_t tabled = 1U << 16;

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
    const Row& first = runs[0].rows[i];
    const std::size_t frees = first.kind == kind_free;
    const std::size_t cell = column(first.start) * frame_.bins;
    std::uint32_t least = saturated;
    std::size_t struck = 0;
    for (const Run& run : runs) {
      const Row& row = run.rows[i];
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

void tile(std::span<const Run> runs, std::uint64_t rows, const by_samples_tile_frame& frame,
          std::span<const std::uint64_t> single, std::size_t threads, std::uint32_t* counts, std::uint32_t* latencies) {
  const Bins bins(frame);
  const std::size_t shares = shares_of(rows, threads);
  const std::size_t cells = std::size_t{frame.columns} * frame.bins;
  std::vector<std::uint32_t> others[max_threads];  // of all shares but the first
  for_each_share(rows, shares, [&](std::size_t share, std::uint64_t begin, std::uint64_t end) {
    if (share != 0) others[share].resize(tile_planes * cells);
    const auto mine = std::lower_bound(single.begin(), single.end(), begin);
    if (!runs.empty()) {
      Worker(frame, bins, share == 0 ? counts : others[share].data()).pass(runs, begin, end, {mine, single.end()});
    }
  });
  for (const auto& other : others) {
    for (std::size_t cell = 0; cell < other.size(); ++cell) counts[cell] += other[cell];
  }
  if (runs.size() == 1) std::copy_n(counts, 2 * cells, counts + 4 * cells);  // a lone run is its own minimum
  for (const std::uint64_t row : single) {
    for (const Run& run : runs) *latencies++ = latency(run.rows[row], run).both;
  }
}

}  // namespace blockyard::samples
