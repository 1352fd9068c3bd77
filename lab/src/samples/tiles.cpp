#include "samples/tiles.hpp"

#include <algorithm>
#include <memory>

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
  Worker(const by_samples_tile_frame& frame, const Bins& bins)
      : frame_(frame),
        bins_(bins),
        per_ns_(frame.end_ns > frame.begin_ns ? frame.columns / (frame.end_ns - frame.begin_ns) : 0) {
    for (auto& plane : counts) plane.resize(static_cast<std::size_t>(frame.columns) * frame.bins);
  }

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

  std::vector<std::uint32_t> counts[tile_planes];

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
      ++counts[frees][cell + bin];
      if (by_machine(row)) [[unlikely]] {
        ++counts[2 + frees][cell + bin];
        ++struck;
      }
      least = std::min(least, ticks);
    }
    if (runs.size() != 1) ++counts[4 + frees][cell + bins_(least)];
    if (returns(struck, runs.size())) [[unlikely]]
      counts[6 + frees][cell + bins_(least)] += static_cast<std::uint32_t>(runs.size());
  }

  std::size_t column(std::uint64_t start) const {
    const double across = (static_cast<double>(start) - frame_.begin_ns) * per_ns_;
    return static_cast<std::size_t>(std::clamp(across, 0.0, frame_.columns - 1.0));
  }

  const by_samples_tile_frame& frame_;
  const Bins& bins_;
  double per_ns_;
};

}  // namespace

Tiles tile(std::span<const Run> runs, std::uint64_t rows, const by_samples_tile_frame& frame,
           std::span<const std::uint64_t> single, std::size_t threads) {
  const Bins bins(frame);
  const std::size_t shares = shares_of(rows, threads);
  std::vector<std::unique_ptr<Worker>> workers(shares);
  for_each_share(rows, shares, [&](std::size_t share, std::uint64_t begin, std::uint64_t end) {
    workers[share] = std::make_unique<Worker>(frame, bins);
    const auto mine = std::lower_bound(single.begin(), single.end(), begin);
    if (!runs.empty()) workers[share]->pass(runs, begin, end, {mine, single.end()});
  });

  Tiles result;
  for (std::size_t plane = 0; plane < tile_planes; ++plane) {
    result.counts[plane] = std::move(workers[0]->counts[plane]);
    for (std::size_t share = 1; share < shares; ++share) {
      const auto& other = workers[share]->counts[plane];
      for (std::size_t cell = 0; cell < other.size(); ++cell) result.counts[plane][cell] += other[cell];
    }
  }
  if (runs.size() == 1) {  // a lone run is its own minimum
    std::copy_n(&result.counts[0], 2, &result.counts[4]);
  }
  result.latencies.reserve(single.size() * runs.size());
  for (const std::uint64_t row : single) {
    for (const Run& run : runs) result.latencies.push_back(latency(run.rows[row], run).both);
  }
  return result;
}

}  // namespace blockyard::samples
