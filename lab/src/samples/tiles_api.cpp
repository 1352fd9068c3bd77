// The C interface to the page's tiles: translates, and lets no exception out.
#include <algorithm>
#include <iterator>
#include <new>

#include "samples/samples.h"
#include "samples/tiles.hpp"

using namespace blockyard::samples;

struct by_samples_tiles : Tiles {};

extern "C" {

by_samples_tiles* by_samples_tile(const by_samples_run* runs, uint32_t run_count, uint64_t rows,
                                  const by_samples_tile_frame* frame, const uint64_t* single, size_t single_count,
                                  uint32_t threads) try {
  std::vector<Run> translated;
  translated.reserve(run_count);
  std::transform(runs, runs + run_count, std::back_inserter(translated), [](const by_samples_run& run) {
    return Run{static_cast<const Row*>(run.rows), run.floor_call, run.floor_touch, run.scale};
  });
  const TileFrame inner{frame->columns,  frame->bins,   frame->per_octave,
                        frame->begin_ns, frame->end_ns, frame->ticks_per_ns};
  return new by_samples_tiles{tile(translated, rows, inner, {single, single_count}, threads)};
} catch (const std::bad_alloc&) {
  return nullptr;
}

void by_samples_tiles_delete(by_samples_tiles* tiles) { delete tiles; }

const uint32_t* by_samples_tiles_counts(const by_samples_tiles* tiles, uint32_t plane) {
  return tiles->counts[plane].data();
}

const uint32_t* by_samples_tiles_latencies(const by_samples_tiles* tiles) { return tiles->latencies.data(); }

}  // extern "C"
