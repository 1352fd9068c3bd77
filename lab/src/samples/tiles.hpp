// What the report's page draws and counts from: latency histograms of short stretches of time, without some single
// events that it shows one by one. Histograms of neighbouring stretches add up, so one structure gives both the density
// at every zoom and the percentiles of any stretch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

struct Tiles {
  /// By plane: columns * bins counts, cell = column * bins + bin.
  std::vector<std::uint32_t> counts[tile_planes];
  /// The latency of each single row in every run: call and touch together, in the group's ticks.
  std::vector<std::uint32_t> latencies;
};

/// Counts all rows except those in `single`, which rise. An event's time is that of its first repeat, in every view.
/// Throws std::bad_alloc.
Tiles tile(std::span<const Run> runs, std::uint64_t rows, const by_samples_tile_frame& frame,
           std::span<const std::uint64_t> single, std::size_t threads);

}  // namespace blockyard::samples
