#include "samples/density.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <thread>

namespace blockyard::samples {

namespace {

/// Latencies below this find their row in a table; above, a logarithm is affordable.
constexpr std::uint32_t tabled = 1U << 16;
/// A latency is known to one tick, and below this a tick is taller than a cell: events are dealt over the tick's height in
/// so many steps by their number, or the picture would show stripes that are the clock's.
constexpr std::uint32_t dealt = 256;
constexpr std::uint32_t steps = 16;
static_assert(steps == 16, "four bits of the hash below");

class Rows {
 public:
  explicit Rows(const Frame& frame)
      : height_(frame.height),
        bottom_(std::log2(frame.low_ticks)),
        per_octave_(frame.height / (std::log2(frame.high_ticks) - std::log2(frame.low_ticks))),
        table_(tabled),
        fine_(dealt * steps) {
    for (std::uint32_t ticks = 0; ticks < tabled; ++ticks) table_[ticks] = computed(ticks);
    for (std::uint32_t place = steps; place < dealt * steps; ++place) {
      fine_[place] = computed(place / steps + (place % steps + 0.5) / steps - 0.5);
    }
  }

  std::uint32_t operator()(std::uint32_t ticks, std::uint32_t event) const {
    if (ticks < dealt) return fine_[ticks * steps + (event * 2654435769U >> 28)];  // the top 4 bits of a golden-ratio hash
    return ticks < tabled ? table_[ticks] : computed(ticks);
  }

 private:
  std::uint32_t computed(double ticks) const {
    if (ticks <= 0) return 0;
    const double row = (std::log2(ticks) - bottom_) * per_octave_;
    return static_cast<std::uint32_t>(std::clamp(row, 0.0, static_cast<double>(height_ - 1)));
  }

  std::uint32_t height_;
  double bottom_;
  double per_octave_;
  std::vector<std::uint32_t> table_;
  std::vector<std::uint32_t> fine_;  // fine_[0..steps) is 0: no time at all lies in the lowest row
};

class Worker {
 public:
  Worker(const Frame& frame, const Rows& rows)
      : frame_(frame), rows_(rows), per_ns_(frame.width / (frame.end_ns - frame.begin_ns)), grids_(planes) {
    const std::size_t cells = static_cast<std::size_t>(frame.width) * frame.height;
    for (Grid& grid : grids_) {
      grid.counts.resize(cells);
      grid.sizes.resize(cells);
    }
  }

  void pass(std::span<const Run> runs, std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i) {
      const Row& first = runs[0].rows[i];
      const bool frees = first.kind == kind_free;
      const Plane as_run = frees ? Plane::free_as_run : Plane::malloc_as_run;
      std::uint32_t least = latency(first, runs[0]).both;
      add(as_run, first, least);
      for (std::size_t r = 1; r < runs.size(); ++r) {
        const Row& row = runs[r].rows[i];
        const std::uint32_t ticks = latency(row, runs[r]).both;
        add(as_run, row, ticks);
        least = std::min(least, ticks);
      }
      add(frees ? Plane::free_inherent : Plane::malloc_inherent, first, least);
    }
  }

  std::vector<Grid>& grids() { return grids_; }

 private:
  void add(Plane plane, const Row& row, std::uint32_t ticks) {
    const double across = (static_cast<double>(row.start) - frame_.begin_ns) * per_ns_;
    if (!(across >= 0 && across < frame_.width)) return;
    Grid& grid = grids_[static_cast<std::size_t>(plane)];
    const std::size_t cell = static_cast<std::size_t>(across) * frame_.height + rows_(ticks, row.event);
    ++grid.counts[cell];
    grid.sizes[cell] += size_step(row.size);
    if (ticks >= frame_.marks_from[static_cast<std::size_t>(plane)]) {
      grid.marks.push_back({row.start, row.size, ticks, row.event});
    }
  }

  const Frame& frame_;
  const Rows& rows_;
  double per_ns_;
  std::vector<Grid> grids_;
};

void join(Grid& into, const Grid& other) {
  for (std::size_t cell = 0; cell < into.counts.size(); ++cell) into.counts[cell] += other.counts[cell];
  for (std::size_t cell = 0; cell < into.sizes.size(); ++cell) into.sizes[cell] += other.sizes[cell];
  into.marks.insert(into.marks.end(), other.marks.begin(), other.marks.end());
}

}  // namespace

std::vector<Grid> bin(std::span<const Run> runs, std::uint64_t rows, const Frame& frame, std::size_t threads) {
  const Rows table(frame);
  const std::size_t shares = rows < 4096 ? 1 : std::clamp<std::size_t>(threads, 1, max_threads);
  std::vector<std::unique_ptr<Worker>> workers(shares);
  std::vector<std::exception_ptr> failures(shares);
  const auto work = [&](std::size_t share) {
    try {
      workers[share] = std::make_unique<Worker>(frame, table);
      if (!runs.empty()) workers[share]->pass(runs, rows * share / shares, rows * (share + 1) / shares);
    } catch (...) {
      failures[share] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::size_t share = 1; share < shares; ++share) helpers.emplace_back(work, share);
    work(0);
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  for (std::size_t share = 1; share < shares; ++share) {
    for (std::size_t plane = 0; plane < planes; ++plane) join(workers[0]->grids()[plane], workers[share]->grids()[plane]);
  }
  return std::move(workers[0]->grids());
}

}  // namespace blockyard::samples
