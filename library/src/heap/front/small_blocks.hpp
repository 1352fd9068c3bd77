// Blocks up to small_limit: the fast paths of malloc and free, and what they fall back on.
//
// Bound: allocate and free are O(1), without a lock, and on the fast paths without an atomic read-modify-write. At most
// two lists of remote frees are adopted on a slow path. A fresh slab comes from the ready stack (lock-free), and only
// when that is empty from the page heap (one lock, O(1)).
#pragma once

#include <cstddef>
#include <cstdint>

#include "heap/front/thread_heap.hpp"

namespace blockyard::heap {

/// Allocates when from_cache() found nothing. `heap` may be the empty one, the thread then takes a heap. Null when
/// memory is exhausted.
void* refill_and_take(ThreadHeap* heap, unsigned size_class);

/// The fast path: a cached block, or the next one at the bump pointer; null: neither is there.
[[gnu::always_inline]] inline void* from_cache(ThreadHeap* heap, CacheSlot slot) {
  if (void* const block = heap->take_cached(slot); block != nullptr) [[likely]] {
    return block;
  }
  Bin& bin = heap->bins[slot.size_class()];
  if (const std::uint32_t left = bin.left; left != 0) {
    char* const block = bin.bump;
    bin.left = left - 1;
    bin.bump = block + bin.block_bytes;
    return block;
  }
  return nullptr;
}

/// Frees a block of any thread's heap for which the cache has no room. O(1).
void free_past_cache(ThreadHeap* heap, void* block);
/// What a free does where the block seems to be one of the two that were cached last: reports it, or caches it.
void free_perhaps_again(ThreadHeap* heap, void* block, CacheSlot slot);
/// Reports it. That it does not return is not said here, so that free_small can jump to it and keeps no stack frame.
void free_inside(const void* block);

/// Frees a small block out of a slab of any thread's heap: `heap` caches it, in its class's slot.
[[gnu::always_inline]] inline void free_small(ThreadHeap* heap, void* block, CacheSlot slot) {
  switch (heap->try_to_cache(slot, block)) {
    [[likely]] case ThreadHeap::Cached::done : return;
    case ThreadHeap::Cached::perhaps_again:
      return free_perhaps_again(heap, block, slot);
    case ThreadHeap::Cached::inside:
      return free_inside(block);
    case ThreadHeap::Cached::full:
      return free_past_cache(heap, block);
  }
}

/// Puts a block back into its slab, whosever that is.
void free_to_any_slab(ThreadHeap* heap, void* block);

}  // namespace blockyard::heap
