// Allocator time in each frame of one thread: sums over stretches of the journal that are given by event numbers, so
// that a frame has the same events in every repeat and on every allocator.
#pragma once

#include <cstdint>
#include <span>

#include "samples/latency.hpp"
#include "samples/samples.h"

namespace blockyard::samples {

/// As by_samples_frame_times(). Memory: 8 bytes per frame, run, view and thread. Throws std::bad_alloc.
void frame_times(std::span<const Run> runs, std::uint64_t rows, std::span<const by_samples_cut> cuts,
                 std::size_t threads);

}  // namespace blockyard::samples
