// What the report's page draws and counts from: latency histograms of short stretches of time, without some single
// events that it shows one by one. Histograms of neighbouring stretches add up, so one structure gives both the density
// at every zoom and the percentiles of any stretch.
#pragma once

#include <cstdint>
#include <span>

#include "samples/latency.hpp"
#include "samples/samples.h"

namespace blockyard::samples {

/// The histograms of one allocator, filled in one pass over its rows.
enum class TilePlane : std::uint32_t {
  malloc_as_run = 0,
  free_as_run = 1,
  malloc_by_machine = 2,  ///< the part of as-run that the machine interrupted: attributed leaves it out ...
  free_by_machine = 3,
  malloc_inherent = 4,
  free_inherent = 5,
  malloc_returned = 6,  ///< ... and has these instead: see returns().
  free_returned = 7,
};
inline constexpr std::size_t tile_planes = 8;

/// As by_samples_tile(). An event's time is that of its first repeat, in every view. Throws std::bad_alloc.
void tile(std::span<const Run> runs, std::uint64_t rows, const by_samples_tile_frame& frame,
          std::span<const std::uint64_t> single, std::size_t threads, std::uint32_t* counts, std::uint32_t* latencies);

}  // namespace blockyard::samples
