// Allocator time by group of events: whatever the caller numbers, such as a call stack within a stretch of time.
#pragma once

#include <cstdint>
#include <span>

#include "samples/latency.hpp"
#include "samples/samples.h"

namespace blockyard::samples {

/// Adds as by_samples_group_times(), on the calling thread. Throws std::bad_alloc.
void group_times(std::span<const Run> runs, std::uint64_t rows, const by_samples_grouping& grouping, double* sums,
                 double* weighted);

}  // namespace blockyard::samples
