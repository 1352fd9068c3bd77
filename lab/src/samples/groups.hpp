// Allocator time by group of events: whatever the caller numbers, such as a call stack within a stretch of time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "samples/latency.hpp"

namespace blockyard::samples {

/// Which group each row belongs to and, for the weighted sums, which frame.
struct Grouping {
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  std::span<const std::uint32_t> group;  ///< by row; below `groups`, or none
  std::size_t groups;
  std::span<const std::uint32_t> frame;  ///< by row; below `frames`, or none. Empty: nothing is weighted
  std::size_t frames;
  /// By View, what a nanosecond in each frame counts in the weighted sums: runs * frames for as_run and attributed,
  /// `frames` for inherent.
  std::span<const double> weights[3];
};

/// By View and group, in the group's ticks: all runs together, of inherent the minimum over them.
struct GroupTimes {
  std::vector<double> sums[3];
  std::vector<double> weighted[3];  ///< empty where nothing is weighted
};

/// One pass over `rows` rows in which a digest found no fault. O(rows * runs), on the calling thread. Throws
/// std::bad_alloc.
GroupTimes group_times(std::span<const Run> runs, std::uint64_t rows, const Grouping& grouping);

}  // namespace blockyard::samples
