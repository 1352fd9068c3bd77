// The C interface: translates, and lets no exception out.
#include <algorithm>
#include <new>

#include "samples/density.hpp"
#include "samples/digest.hpp"
#include "samples/frames.hpp"
#include "samples/groups.hpp"
#include "samples/samples.h"
#include "samples/stack_cells.hpp"
#include "samples/tiles.hpp"

using namespace blockyard::samples;

struct by_samples_digest : Digest {
  using Digest::Digest;
};

struct by_samples_bins {
  std::vector<Grid> grids;
};

struct by_samples_cells : StackCells {
  using StackCells::StackCells;
};

namespace {

std::vector<Run> translated(const by_samples_run* runs, std::uint32_t count) {
  std::vector<Run> result;
  result.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    result.push_back({static_cast<const Row*>(runs[i].rows), runs[i].floor_call, runs[i].floor_touch, runs[i].scale});
  }
  return result;
}

size_t copied(const Distribution& found, uint32_t* ticks, uint64_t* counts, size_t capacity) {
  const auto many = static_cast<std::ptrdiff_t>(std::min(capacity, found.ticks.size()));
  std::copy(found.ticks.begin(), found.ticks.begin() + many, ticks);
  std::copy(found.counts.begin(), found.counts.begin() + many, counts);
  return found.ticks.size();
}

}  // namespace

extern "C" {

uint32_t by_samples_abi(void) { return BY_SAMPLES_ABI; }

by_samples_digest* by_samples_digest_new(uint32_t threads, uint32_t slowest, uint32_t phases) try {
  return new by_samples_digest(threads, slowest, phases);
} catch (const std::bad_alloc&) {
  return nullptr;
}

void by_samples_digest_delete(by_samples_digest* digest) { delete digest; }

by_samples_fault by_samples_digest_feed(by_samples_digest* digest, const by_samples_run* runs, uint32_t run_count,
                                        uint64_t rows, uint32_t phase) try {
  const Fault fault = digest->feed(translated(runs, run_count), rows, phase);
  return {static_cast<uint32_t>(fault.what), fault.run, fault.row};
} catch (const std::bad_alloc&) {
  return {static_cast<uint32_t>(Fault::What::memory), 0, 0};
}

size_t by_samples_digest_copy(const by_samples_digest* digest, uint32_t view, uint32_t metric_bits,
                              uint32_t size_class_bits, uint32_t run, uint32_t phase, uint32_t* ticks, uint64_t* counts,
                              size_t capacity) try {
  return copied(digest->distribution(static_cast<View>(view), metric_bits, size_class_bits, run, phase), ticks, counts,
                capacity);
} catch (const std::bad_alloc&) {
  return SIZE_MAX;
}

size_t by_samples_digest_cause(const by_samples_digest* digest, uint32_t operation, uint32_t cause, uint32_t* ticks,
                               uint64_t* counts, size_t capacity) try {
  return copied(digest->by_cause(static_cast<Operation>(operation), static_cast<std::uint8_t>(cause)), ticks, counts,
                capacity);
} catch (const std::bad_alloc&) {
  return SIZE_MAX;
}

size_t by_samples_digest_slowest(const by_samples_digest* digest, by_samples_slow* events, size_t capacity) try {
  const std::vector<by_samples_slow> found = digest->slowest();
  std::copy_n(found.begin(), std::min(capacity, found.size()), events);
  return found.size();
} catch (const std::bad_alloc&) {
  return SIZE_MAX;
}

int by_samples_frame_times(const by_samples_run* runs, uint32_t run_count, uint64_t rows, const by_samples_cut* cuts,
                           uint32_t cut_count, uint32_t threads) try {
  frame_times(translated(runs, run_count), rows, {cuts, cut_count}, threads);
  return 0;
} catch (const std::bad_alloc&) {
  return 1;
}

by_samples_bins* by_samples_bin(const by_samples_run* runs, uint32_t run_count, uint64_t rows,
                                const by_samples_frame* frame, uint32_t threads) try {
  return new by_samples_bins{bin(translated(runs, run_count), rows, *frame, threads)};
} catch (const std::bad_alloc&) {
  return nullptr;
}

void by_samples_bins_delete(by_samples_bins* bins) { delete bins; }

by_samples_plane by_samples_bins_plane(const by_samples_bins* bins, uint32_t plane) {
  const Grid& grid = bins->grids[plane];
  return {grid.counts.data(), grid.sizes.data(), grid.marks.data(), grid.marks.size()};
}

int by_samples_tile(const by_samples_run* runs, uint32_t run_count, uint64_t rows, const by_samples_tile_frame* frame,
                    const uint64_t* single, size_t single_count, uint32_t threads, uint32_t* counts,
                    uint32_t* latencies) try {
  tile(translated(runs, run_count), rows, *frame, {single, single_count}, threads, counts, latencies);
  return 0;
} catch (const std::bad_alloc&) {
  return 1;
}

int by_samples_group_times(const by_samples_run* runs, uint32_t run_count, uint64_t rows,
                           const by_samples_grouping* grouping, double* sums, double* weighted) try {
  group_times(translated(runs, run_count), rows, *grouping, sums, weighted);
  return 0;
} catch (const std::bad_alloc&) {
  return 1;
}

int by_samples_stack_events(const void* rows, uint64_t count, const by_samples_stack_source* source,
                            const by_samples_stack_rows* found, double* sums) try {
  stack_events({static_cast<const Row*>(rows), count}, *source, *found, sums);
  return 0;
} catch (const std::bad_alloc&) {
  return 1;
}

by_samples_cells* by_samples_cells_new(const void* rows, uint64_t count, const by_samples_stack_rows* stacks,
                                       const uint32_t* place_of_node, uint32_t places, uint32_t columns) try {
  const std::span<const Row> all{static_cast<const Row*>(rows), count};
  return new by_samples_cells(all, *stacks, place_of_node, places, columns);
} catch (const std::bad_alloc&) {
  return nullptr;
}

void by_samples_cells_delete(by_samples_cells* cells) { delete cells; }

uint64_t by_samples_cells_count(const by_samples_cells* cells, uint32_t kind) { return cells->count(kind); }

void by_samples_cells_join(by_samples_cells* cells) { cells->join(); }

int by_samples_cells_copy(const by_samples_cells* cells, const by_samples_cell_columns* found, uint32_t* group) try {
  cells->copy(found, group);
  return 0;
} catch (const std::bad_alloc&) {
  return 1;
}

}  // extern "C"
