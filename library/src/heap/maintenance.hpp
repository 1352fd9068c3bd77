// What is done behind the program's back, by the janitor or at the end of a frame: memory is populated before it is
// wanted, slabs are cut, parked heaps are swept, and what nobody wants any more goes back to the operating system.
//
// Bound: docs/reference/bounds.md has the turns of every loop of a round; between two steps it looks at the clock, and a step
// populates or gives back at most one chunk.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heap/atomic.hpp"
#include "heap/purge.hpp"

namespace blockyard::heap {

class Maintenance {
 public:
  constexpr Maintenance() = default;

  /// Populates the first reserve and cuts the first slabs, before anybody allocates.
  void make_first_reserve();

  /// One round; `budget_ns` bounds it between steps. Returns whether there is more to do at once. Any thread; while
  /// another is at it, it does nothing: the janitor that was switched off may be in its last round when a frame ends, or
  /// frames end on several threads.
  bool run(std::uint64_t budget_ns);
  /// In a forked child, where whoever was at it is gone.
  void forget();

  /// Populates so that `bytes` stand ready, now, on the calling thread: at most so many and what large blocks left. False
  /// when they can't be had. Any thread.
  bool prefault(std::size_t bytes);
  /// Gives every whole free chunk back, now, as far as it was free at the call. Returns bytes. Any thread.
  std::size_t trim();

 private:
  bool run_alone(std::uint64_t budget_ns);
  bool sweep_parked();
  void free_blocks_of_parked(std::uint16_t now);

  Purging purging_;
  std::uint32_t parked_slabs_ = 0;   // of heaps that this turn of the sweep has seen
  std::uint32_t parked_before_ = 0;  // likewise: after the turn that the depot was last emptied for, or fewer since
  std::uint16_t emptied_at_ = 0;     // tick at which it was
  std::uint16_t empty_after_ = 0;    // ticks until it may be again
  Atomic<bool> running_{false};      // what says nothing of threads above is its thread's
};

extern Maintenance maintenance;

}  // namespace blockyard::heap
