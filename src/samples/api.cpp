// The C interface: translates, and lets no exception out.
#include <algorithm>
#include <new>

#include "samples/density.hpp"
#include "samples/digest.hpp"
#include "samples/samples.h"

using namespace blockyard::samples;

static_assert(sizeof(by_samples_mark) == sizeof(Mark) && alignof(by_samples_mark) == alignof(Mark));

struct by_samples_digest : Digest {
  using Digest::Digest;
};

struct by_samples_bins {
  std::vector<Grid> grids;
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

}  // namespace

extern "C" {

uint32_t by_samples_abi(void) { return BY_SAMPLES_ABI; }

by_samples_digest* by_samples_digest_new(uint32_t threads) try {
  return new by_samples_digest(threads);
} catch (const std::bad_alloc&) {
  return nullptr;
}

void by_samples_digest_delete(by_samples_digest* digest) { delete digest; }

by_samples_fault by_samples_digest_feed(by_samples_digest* digest, const by_samples_run* runs, uint32_t run_count,
                                        uint64_t rows) try {
  const Fault fault = digest->feed(translated(runs, run_count), rows);
  return {static_cast<uint32_t>(fault.what), fault.run, fault.row};
} catch (const std::bad_alloc&) {
  return {static_cast<uint32_t>(Fault::What::memory), 0, 0};
}

size_t by_samples_digest_copy(const by_samples_digest* digest, uint32_t view, uint32_t metric, uint32_t size_class,
                              uint32_t* ticks, uint64_t* counts, size_t capacity) try {
  const Distribution found = digest->distribution(static_cast<View>(view), static_cast<Metric>(metric), size_class);
  const auto copied = static_cast<std::ptrdiff_t>(std::min(capacity, found.ticks.size()));
  std::copy(found.ticks.begin(), found.ticks.begin() + copied, ticks);
  std::copy(found.counts.begin(), found.counts.begin() + copied, counts);
  return found.ticks.size();
} catch (const std::bad_alloc&) {
  return SIZE_MAX;
}

by_samples_bins* by_samples_bin(const by_samples_run* runs, uint32_t run_count, uint64_t rows,
                                const by_samples_frame* frame, uint32_t threads) try {
  Frame inner{frame->width,     frame->height,     frame->begin_ns,   frame->end_ns,
              frame->low_ticks, frame->high_ticks, frame->step_ticks, {}};
  std::copy(std::begin(frame->marks_from), std::end(frame->marks_from), std::begin(inner.marks_from));
  return new by_samples_bins{bin(translated(runs, run_count), rows, inner, threads)};
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
  const std::vector<Mark>& marks = bins->grids[plane].marks;
  *count = marks.size();
  return reinterpret_cast<const by_samples_mark*>(marks.data());
}

}  // extern "C"
