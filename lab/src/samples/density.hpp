// Bins samples for the density pictures: time across, log latency up, one cell per pixel.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "samples/latency.hpp"
#include "samples/samples.h"

namespace blockyard::samples {

/// The six pictures of one allocator, filled in one pass over its rows.
enum class Plane : std::uint32_t {
  malloc_as_run = 0,
  free_as_run = 1,
  malloc_inherent = 2,
  free_inherent = 3,
  malloc_attributed = 4,
  free_attributed = 5,
};
inline constexpr std::size_t planes = 6;

/// Cells of one picture, column by column (cell = x * height + y, y upwards). Events are in order of time, so a stretch
/// of them falls into one column, which stays in the cache.
struct Grid {
  std::vector<std::uint32_t> counts;
  std::vector<std::uint64_t> sizes;    ///< sum over the cell's events of size_step(size)
  std::vector<by_samples_mark> marks;  ///< in order of event
};

/// A block's size on a logarithmic scale: four steps per octave, 0 for 0 and 1 byte, 4 for 2 bytes, 40 for 1 KiB.
inline std::uint32_t size_step(std::uint64_t size) {
  if (size < 2) return 0;
  const auto octave = static_cast<std::uint32_t>(std::bit_width(size) - 1);
  const std::uint64_t below = octave >= 2 ? size >> (octave - 2) : size << (2 - octave);
  return octave * 4 + static_cast<std::uint32_t>(below & 3);
}

/// Fills the planes. The time of an inherent event is that of its first repeat. Throws std::bad_alloc.
std::vector<Grid> bin(std::span<const Run> runs, std::uint64_t rows, const by_samples_frame& frame,
                      std::size_t threads);

}  // namespace blockyard::samples
