// Looking after heaps that wait for a thread: they get no slow paths that would adopt their remote frees.
//
// Bound: a round sweeps at most 16 heaps, adopts at most 64 remote-free lists of each, flushes one, and drains at most
// 16 magazines of the depot, 256 at the end of a turn.
#pragma once

#include <cstdint>

#include "heap/depot.hpp"
#include "heap/heap_table.hpp"

namespace blockyard::heap {

/// One thread at a time.
class Sweep {
 public:
  constexpr Sweep() = default;

  /// Looks after a few heaps. True where some are left.
  bool run(HeapTable& heaps, Depot& depot, std::uint16_t tick);

 private:
  void drain_for_parked(Depot& depot, std::uint16_t tick);

  std::uint32_t slabs_ = 0;         // of heaps that this turn has seen
  std::uint32_t slabs_before_ = 0;  // likewise, after the turn that the depot was last drained for, or fewer since
  std::uint16_t drained_at_ = 0;    // tick
  std::uint16_t wait_ = 0;          // ticks until it may be drained again
};

/// Puts all that waits in the depot, at most `most` magazines, back into its slabs. One thread at a time.
bool drain(Depot& depot, std::uint16_t tick, bool all, std::uint32_t most);

}  // namespace blockyard::heap
