// ChunkCount: says when the last block of a chunk is freed, although the chunk's owner counts without atomic
// operations.
//
// While a chunk has an owner, that thread counts its own allocations less its own frees in a plain number. All other
// frees go below zero in `outside`. When the owner retires the chunk, it adds its number. From then on `outside` is the
// number of live blocks, and whoever brings it to zero, which happens once, has the chunk.
//
// Source: Choi, Shull, Torrellas, "Biased reference counting", PACT 2018; the owner's count is merged when it moves on.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/atomic.hpp"

namespace blockyard::lifetime {

template <class Atomics = base::StandardAtomics>
class ChunkCount {
 public:
  ChunkCount() = default;

  /// Another thread than the owner freed a block. True: it was the last, and the caller has the chunk.
  bool free_one() {
    // release: writes to the block come before the chunk's next owner; acquire: the caller may be that owner.
    return outside_.fetch_add(-1, std::memory_order_acq_rel) == 1;
  }

  /// The owner moves on; `live` is its own count. True: no block is live, and the caller has the chunk.
  bool retire(std::int64_t live) { return outside_.fetch_add(live, std::memory_order_acq_rel) + live == 0; }

  /// For the owner: whether every block was freed. Then no other thread will touch the chunk.
  bool is_empty(std::int64_t live) const { return outside_.load(std::memory_order_acquire) + live == 0; }

  /// For whoever has the chunk.
  void reset() { outside_.store(0, std::memory_order_relaxed); }

 private:
  typename Atomics::template atomic<std::int64_t> outside_{0};
};

}  // namespace blockyard::lifetime
