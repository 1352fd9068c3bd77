// Bins samples for the density pictures: time across, log latency up, one cell per pixel. The time of an inherent event
// is that of its first repeat.
#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "samples/latency.hpp"
#include "samples/shares.hpp"

namespace blockyard::samples {
namespace {

/// The six pictures of one allocator, filled in one pass over its rows.
enum class Plane : std::uint32_t {
  malloc_as_run = 0,
  free_as_run = 1,
  malloc_inherent = 2,
  free_inherent = 3,
  malloc_attributed = 4,
  free_attributed = 5,
};
constexpr std::size_t planes = 6;

/// Cells of one picture, column by column (cell = x * height + y, y upwards). Events are in order of time, so a stretch
/// of them falls into one column, which stays in the cache.
struct Grid {
  std::vector<std::uint32_t> counts;
  std::vector<std::uint64_t> sizes;    ///< sum over the cell's events of size_step(size)
  std::vector<by_samples_mark> marks;  ///< in order of event
};

/// A block's size on a logarithmic scale: four steps per octave, 0 for 0 and 1 byte, 4 for 2 bytes, 40 for 1 KiB.
std::uint32_t size_step(std::uint64_t size) {
  if (size < 2) return 0;
  const auto octave = static_cast<std::uint32_t>(std::bit_width(size) - 1);
  const std::uint64_t below = octave >= 2 ? size >> (octave - 2) : size << (2 - octave);
  return octave * 4 + static_cast<std::uint32_t>(below & 3);
}

/// Latencies below this find their row in a table; above, a logarithm is affordable.
constexpr std::uint32_t tabled = 1U << 16;
/// A latency is known to one step of the clock, and near the foot of a picture a step is taller than many cells. Events
/// are spread over its height by their number; otherwise the picture would show stripes that come from the clock.
constexpr std::uint32_t parts = 64;
/// From so many steps on, a step is about as tall as a cell (14 cells per octave).
constexpr std::uint32_t dealt_steps = 64;
constexpr std::uint32_t most_dealt = 1U << 14;

class Rows {
 public:
  explicit Rows(const by_samples_frame& frame)
      : height_(frame.height),
        bottom_(std::log2(frame.low_ticks)),
        per_octave_(frame.height / (std::log2(frame.high_ticks) - std::log2(frame.low_ticks))),
        table_(tabled),
        dealt_(std::min(std::max(frame.step_ticks, 1U) * std::uint64_t{dealt_steps}, std::uint64_t{most_dealt})),
        fine_(dealt_ * parts) {
    const double step = std::max(frame.step_ticks, 1U);
    for (std::uint32_t ticks = 0; ticks < tabled; ++ticks) table_[ticks] = computed(ticks);
    for (std::uint32_t ticks = 0; ticks < dealt_; ++ticks) {
      for (std::uint32_t part = 0; part < parts; ++part) {
        // Less than one step is known as 0, which has no place on a logarithmic axis: spread evenly up to half a step.
        const double low = ticks <= step / 2 ? 0 : row(ticks - step / 2);
        fine_[ticks * parts + part] =
            static_cast<std::uint32_t>(low + (row(ticks + step / 2) - low) * (part + 0.5) / parts);
      }
    }
  }

  std::uint32_t operator()(std::uint32_t ticks, std::uint32_t event) const {
    static_assert(parts == 64, "the top six bits of a golden-ratio hash");
    if (ticks < dealt_) return fine_[ticks * parts + (event * 2654435769U >> 26)];
    return ticks < tabled ? table_[ticks] : computed(ticks);
  }

 private:
  std::uint32_t computed(std::uint32_t ticks) const { return static_cast<std::uint32_t>(row(ticks)); }

  double row(double ticks) const {
    if (ticks <= 0) return 0;
    return std::clamp((std::log2(ticks) - bottom_) * per_octave_, 0.0, height_ - 1.0);
  }

  std::uint32_t height_;
  double bottom_;
  double per_octave_;
  std::vector<std::uint32_t> table_;
  std::uint64_t dealt_;
  std::vector<std::uint32_t> fine_;
};

class Worker {
 public:
  Worker(const by_samples_frame& frame, const Rows& rows)
      : frame_(frame), rows_(rows), per_ns_(frame.width / (frame.end_ns - frame.begin_ns)), grids_(planes) {
    const std::size_t cells = static_cast<std::size_t>(frame.width) * frame.height;
    for (Grid& grid : grids_) {
      grid.counts.resize(cells);
      grid.sizes.resize(cells);
    }
  }

  void pass(std::span<const Run> runs, std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i) {
      const Row& first = row_of(runs[0], i);
      const bool frees = first.kind == kind_free;
      const Plane as_run = frees ? Plane::free_as_run : Plane::malloc_as_run;
      const Plane attributed = frees ? Plane::free_attributed : Plane::malloc_attributed;
      std::uint32_t least = saturated;
      std::size_t struck = 0;
      for (std::size_t r = 0; r < runs.size(); ++r) {
        const Row& row = row_of(runs[r], i);
        const std::uint32_t ticks = latency(row, runs[r]).both;
        add(as_run, attributed, row, ticks, static_cast<std::uint32_t>(r));
        least = std::min(least, ticks);
        struck += by_machine(row);
      }
      if (returns(struck, runs.size())) [[unlikely]] {
        for (std::size_t r = 0; r < runs.size(); ++r)
          add_returned(attributed, row_of(runs[r], i), least, static_cast<std::uint32_t>(r));
      }
      const Plane inherent = frees ? Plane::free_inherent : Plane::malloc_inherent;
      if (runs.size() == 1) {
        add_mark(inherent, first, least);
      } else {
        add_inherent(inherent, first, least);
      }
    }
  }

  /// Once all rows of so many runs have passed.
  void finish(std::size_t runs) {
    if (runs == 1) {  // its own minimum
      for (const auto& [as_run, inherent] : {std::pair{Plane::malloc_as_run, Plane::malloc_inherent},
                                             std::pair{Plane::free_as_run, Plane::free_inherent}}) {
        of(inherent).counts = of(as_run).counts;
        of(inherent).sizes = of(as_run).sizes;
      }
    }
    for (const auto& [as_run, attributed] : {std::pair{Plane::malloc_as_run, Plane::malloc_attributed},
                                             std::pair{Plane::free_as_run, Plane::free_attributed}}) {
      for (std::size_t cell = 0; cell < of(as_run).counts.size(); ++cell) {
        of(attributed).counts[cell] = of(as_run).counts[cell] - of(attributed).counts[cell];
        of(attributed).sizes[cell] = of(as_run).sizes[cell] - of(attributed).sizes[cell];
      }
    }
  }

  Grid& of(Plane plane) { return grids_[static_cast<std::size_t>(plane)]; }
  std::vector<Grid>& grids() { return grids_; }

 private:
  static constexpr std::size_t outside = std::numeric_limits<std::size_t>::max();

  std::size_t cell_of(const Row& row, std::uint32_t ticks) const {
    const double across = (static_cast<double>(row.start) - frame_.begin_ns) * per_ns_;
    if (!(across >= 0 && across < frame_.width)) return outside;
    return static_cast<std::size_t>(across) * frame_.height + rows_(ticks, row.event);
  }

  /// Until finish(), the attributed plane holds the few events that are *not* to be in it, less those that are returned
  /// (this may be negative: the arithmetic wraps). The others are in as_run.
  void add(Plane as_run, Plane attributed, const Row& row, std::uint32_t ticks, std::uint32_t run) {
    const std::size_t cell = cell_of(row, ticks);
    if (cell == outside) return;
    const by_samples_mark mark{row.start, row.size, ticks, row.event, run, row.cause};
    fill(as_run, cell, mark);
    if (!by_machine(row)) {
      if (ticks >= frame_.marks_from[static_cast<std::size_t>(attributed)]) of(attributed).marks.push_back(mark);
    } else {
      ++of(attributed).counts[cell];
      of(attributed).sizes[cell] += size_step(row.size);
    }
  }

  void add_returned(Plane attributed, const Row& row, std::uint32_t ticks, std::uint32_t run) {
    const std::size_t cell = cell_of(row, ticks);
    if (cell == outside) return;
    Grid& grid = of(attributed);
    --grid.counts[cell];
    grid.sizes[cell] -= size_step(row.size);
    if (ticks >= frame_.marks_from[static_cast<std::size_t>(attributed)])
      grid.marks.push_back({row.start, row.size, ticks, row.event, run, row.cause});
  }

  void add_inherent(Plane plane, const Row& row, std::uint32_t ticks) {
    const std::size_t cell = cell_of(row, ticks);
    if (cell != outside) fill(plane, cell, {row.start, row.size, ticks, row.event, 0, 0});
  }

  /// Only the mark: of a lone run, whose counts are copied at the end.
  void add_mark(Plane plane, const Row& row, std::uint32_t ticks) {
    if (ticks < frame_.marks_from[static_cast<std::size_t>(plane)]) [[likely]]
      return;
    if (cell_of(row, ticks) != outside) of(plane).marks.push_back({row.start, row.size, ticks, row.event, 0, 0});
  }

  void fill(Plane plane, std::size_t cell, const by_samples_mark& mark) {
    Grid& grid = of(plane);
    ++grid.counts[cell];
    grid.sizes[cell] += size_step(mark.size);
    if (mark.ticks >= frame_.marks_from[static_cast<std::size_t>(plane)]) grid.marks.push_back(mark);
  }

  const by_samples_frame& frame_;
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
}  // namespace blockyard::samples

using namespace blockyard::samples;

struct by_samples_bins {
  std::vector<Grid> grids;
};

by_samples_bins* by_samples_bin(const by_samples_run* runs, std::uint32_t run_count, std::uint64_t rows,
                                const by_samples_frame* frame, std::uint32_t threads) try {
  const Rows table(*frame);
  const std::size_t shares = shares_of(rows, threads);
  std::vector<std::unique_ptr<Worker>> workers(shares);
  for_each_share(rows, shares, [&](std::size_t share, std::uint64_t begin, std::uint64_t end) {
    workers[share] = std::make_unique<Worker>(*frame, table);
    if (run_count != 0) workers[share]->pass({runs, run_count}, begin, end);
  });
  for (std::size_t share = 1; share < shares; ++share) {
    for (std::size_t plane = 0; plane < planes; ++plane)
      join(workers[0]->grids()[plane], workers[share]->grids()[plane]);
  }
  workers[0]->finish(run_count);
  return new by_samples_bins{std::move(workers[0]->grids())};
} catch (const std::bad_alloc&) {
  return nullptr;
}

void by_samples_bins_delete(by_samples_bins* bins) { delete bins; }

by_samples_plane by_samples_bins_plane(const by_samples_bins* bins, std::uint32_t plane) {
  const Grid& grid = bins->grids[plane];
  return {grid.counts.data(), grid.sizes.data(), grid.marks.data(), grid.marks.size()};
}
