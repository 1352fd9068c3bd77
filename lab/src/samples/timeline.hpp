// When the events of one run happened, for cutting a section into frames, audio buffers and phases.
//
// Threads are out of order by microseconds. When an earlier event in the file started later, its start counts instead,
// so that time only rises. One pass each, O(rows); memory is what is returned.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "samples/row.hpp"

namespace blockyard::samples {

/// Counts by bin of time; a reallocate is an allocation and a free.
struct Timeline {
  std::uint64_t latest_ns = 0;             ///< the last start
  std::uint64_t end_event = 0;             ///< one more than the last event
  std::vector<std::uint64_t> mallocs;      ///< by bin
  std::vector<std::uint64_t> frees;        ///< by bin
  std::vector<std::uint64_t> first_event;  ///< by bin: the first event in it or later
  std::vector<std::uint64_t> by_thread;    ///< events by thread
};

/// Stops at a start after `longest_ns`, which is then `latest_ns`. Throws std::bad_alloc.
Timeline timeline(std::span<const Row> rows, std::uint64_t bin_ns, std::uint64_t longest_ns);

inline constexpr std::uint32_t any_thread = std::numeric_limits<std::uint32_t>::max();

/// For each boundary (rising), the number of the first event of the thread that started at or after it, or one more
/// than the last event of all where there is none. `found` is as long as `boundaries_ns`.
void first_events(std::span<const Row> rows, std::uint32_t thread, std::span<const double> boundaries_ns,
                  std::span<std::uint64_t> found);

}  // namespace blockyard::samples
