// Protocol: when the last block of a chunk is gone, although its owner counts without atomic operations.
//
// While a chunk is some thread's newest, that thread counts its own allocations less its own frees in a plain number,
// and everybody else's frees go below zero in `outside`. Retiring adds the plain number: from then on `outside` is the
// number of live blocks, and whoever brings it to zero, once, has the chunk. (Reference counts biased towards one
// thread: Choi, Shull and Torrellas, "Biased reference counting", PACT 2018, with the owner's half merged at the latest
// when it moves on.)
#pragma once

#include <atomic>
#include <cstdint>

#include "heap/remote_list.hpp"

namespace blockyard::lifetime {

template <class Atomics = heap::StandardAtomics>
class ChunkCount {
 public:
  ChunkCount() = default;

  /// A block was freed by a thread whose newest chunk this is not. True: it was the last, and the caller has the chunk.
  bool free_one() {
    // release: what was written to the block comes before its chunk's next owner; acquire: for being that owner.
    return outside_.fetch_add(-1, std::memory_order_acq_rel) == 1;
  }

  /// The owner moves on, with `live` blocks by its own count. True: none lives, and the caller has the chunk.
  bool retire(std::int64_t live) { return outside_.fetch_add(live, std::memory_order_acq_rel) + live == 0; }

  /// Asked by the owner before it moves on: has every block been freed? Then nobody else will touch the chunk.
  bool is_empty(std::int64_t live) const { return outside_.load(std::memory_order_acquire) + live == 0; }

  /// For the one that has the chunk.
  void reset() { outside_.store(0, std::memory_order_relaxed); }

 private:
  typename Atomics::template atomic<std::int64_t> outside_{0};
};

}  // namespace blockyard::lifetime
