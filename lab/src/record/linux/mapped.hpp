// The program's side of the region: maps a thread's ring when the thread comes, so that mlockall() locks, and address
// space is taken for, no more than is used.
#pragma once

#include <cstdint>

#include "record/channel.hpp"

namespace blockyard::record {

/// What this process image has mapped. Lies in memory that is zeroed in a forked child, which has none of it. Not
/// thread-safe.
struct Mapped {
  Control* control;  ///< nullptr: no region
  void* empty_page;
  Slot* first_slot;
  Slot* last_slot;
  std::uint64_t* large[most_large_rings];

  /// A slot whose owner is `tid` from now on; nullptr when all are taken, or there is no memory. O(slots that were
  /// used) where one of them is free, else two system calls.
  Slot* take_slot(std::uint32_t tid);
  /// A large ring that nobody has, and its number from 1 on; nullptr when there is none. Two system calls for one that
  /// was never used.
  std::uint64_t* take_large(std::uint32_t& number);
  /// Unmaps everything, but the first page only on request. Nobody may use a ring any more.
  void unmap(bool with_control);
};

}  // namespace blockyard::record
