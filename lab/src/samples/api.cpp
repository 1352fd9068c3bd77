// The C interface: translates, and lets no exception out.
#include <algorithm>
#include <new>

#include "samples/density.hpp"
#include "samples/digest.hpp"
#include "samples/frames.hpp"
#include "samples/groups.hpp"
#include "samples/samples.h"
#include "samples/tiles.hpp"
#include "samples/timeline.hpp"

using namespace blockyard::samples;

struct by_samples_digest : Digest {
  using Digest::Digest;
};

struct by_samples_frames : FrameSums {
  using FrameSums::FrameSums;
};

struct by_samples_bins {
  std::vector<Grid> grids;
};

struct by_samples_tiles : Tiles {};

struct by_samples_timeline : Timeline {};

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

by_samples_frames* by_samples_frames_new(const by_samples_cut* cuts, uint32_t cut_count, uint32_t run_count,
                                         uint32_t threads) try {
  std::vector<Cut> inner;
  for (std::uint32_t i = 0; i < cut_count; ++i) {
    inner.push_back({cuts[i].thread, {cuts[i].edges, cuts[i].edges + cuts[i].edge_count}});
  }
  return new by_samples_frames(std::move(inner), run_count, threads);
} catch (const std::bad_alloc&) {
  return nullptr;
}

void by_samples_frames_delete(by_samples_frames* frames) { delete frames; }

void by_samples_frames_feed(by_samples_frames* frames, const by_samples_run* runs, uint32_t run_count, uint64_t rows) {
  frames->feed(translated(runs, run_count), rows);
}

int by_samples_frames_copy(const by_samples_frames* frames, uint32_t cut, uint32_t* events, uint64_t* as_run,
                           uint64_t* attributed, uint64_t* inherent) try {
  const FrameTimes found = frames->times(cut);
  std::copy(found.events.begin(), found.events.end(), events);
  std::copy(found.inherent.begin(), found.inherent.end(), inherent);
  for (std::size_t run = 0; run < frames->runs(); ++run) {
    as_run = std::copy(found.as_run[run].begin(), found.as_run[run].end(), as_run);
    attributed = std::copy(found.attributed[run].begin(), found.attributed[run].end(), attributed);
  }
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

const uint32_t* by_samples_bins_counts(const by_samples_bins* bins, uint32_t plane) {
  return bins->grids[plane].counts.data();
}

const uint64_t* by_samples_bins_sizes(const by_samples_bins* bins, uint32_t plane) {
  return bins->grids[plane].sizes.data();
}

const by_samples_mark* by_samples_bins_marks(const by_samples_bins* bins, uint32_t plane, size_t* count) {
  const std::vector<by_samples_mark>& marks = bins->grids[plane].marks;
  *count = marks.size();
  return marks.data();
}

by_samples_tiles* by_samples_tile(const by_samples_run* runs, uint32_t run_count, uint64_t rows,
                                  const by_samples_tile_frame* frame, const uint64_t* single, size_t single_count,
                                  uint32_t threads) try {
  return new by_samples_tiles{tile(translated(runs, run_count), rows, *frame, {single, single_count}, threads)};
} catch (const std::bad_alloc&) {
  return nullptr;
}

void by_samples_tiles_delete(by_samples_tiles* tiles) { delete tiles; }

const uint32_t* by_samples_tiles_counts(const by_samples_tiles* tiles, uint32_t plane) {
  return tiles->counts[plane].data();
}

const uint32_t* by_samples_tiles_latencies(const by_samples_tiles* tiles) { return tiles->latencies.data(); }

int by_samples_group_times(const by_samples_run* runs, uint32_t run_count, uint64_t rows,
                           const by_samples_grouping* grouping, double* sums, double* weighted) try {
  const by_samples_grouping& given = *grouping;
  Grouping wanted{{given.group, rows}, given.group_count, {}, 0, {}};
  if (given.frame != nullptr) {
    wanted.frame = {given.frame, rows};
    wanted.frames = given.frame_count;
    const std::size_t every = run_count * given.frame_count;
    wanted.weights[0] = {given.as_run, every};
    wanted.weights[1] = {given.inherent, given.frame_count};
    wanted.weights[2] = {given.attributed, every};
  }
  const GroupTimes found = group_times(translated(runs, run_count), rows, wanted);
  for (const auto& view : found.sums) sums = std::copy(view.begin(), view.end(), sums);
  for (const auto& view : found.weighted) weighted = std::copy(view.begin(), view.end(), weighted);
  return 0;
} catch (const std::bad_alloc&) {
  return 1;
}

by_samples_timeline* by_samples_timeline_read(const void* rows, uint64_t count, uint64_t bin_ns, uint64_t longest_ns,
                                              by_samples_timeline_facts* facts) try {
  auto* found = new by_samples_timeline{timeline({static_cast<const Row*>(rows), count}, bin_ns, longest_ns)};
  *facts = {found->latest_ns, found->end_event, found->mallocs.size(), found->by_thread.size()};
  return found;
} catch (const std::bad_alloc&) {
  return nullptr;
}

void by_samples_timeline_delete(by_samples_timeline* timeline) { delete timeline; }

const uint64_t* by_samples_timeline_column(const by_samples_timeline* timeline, uint32_t column) {
  const std::vector<std::uint64_t>* columns[] = {&timeline->mallocs, &timeline->frees, &timeline->first_event,
                                                 &timeline->by_thread};
  return columns[column]->data();
}

void by_samples_first_events(const void* rows, uint64_t count, uint32_t thread, const double* boundaries_ns,
                             size_t boundary_count, uint64_t* found) {
  first_events({static_cast<const Row*>(rows), count}, thread, {boundaries_ns, boundary_count},
               {found, boundary_count});
}

}  // extern "C"
