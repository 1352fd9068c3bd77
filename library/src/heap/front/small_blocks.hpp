// Blocks up to small_limit: the fast paths of malloc and free, and what they fall back on.
//
// Bound: allocate and free are O(1), without a lock, and on the fast paths without an atomic read-modify-write. At most
// two lists of remote frees are adopted on a slow path. A fresh slab comes from the ready stack (lock-free), and only
// when that is empty from the page heap (one lock, O(1)).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "heap/front/free_links.hpp"
#include "heap/front/hardening.hpp"
#include "heap/front/thread_heap.hpp"

namespace blockyard::heap {

/// Allocates when no block is cached and the bump pointer has reached the current slab's end. `heap` may be the empty
/// one, the thread then takes a heap. Null when memory is exhausted.
void* allocate_slow(ThreadHeap* heap, unsigned size_class);

/// The fast path, for the class of a cache_place: null sends the caller to allocate_slow.
[[gnu::always_inline]] inline void* allocate_small(ThreadHeap* heap, std::size_t place) {
  if (void* const block = heap->take_cached(place); block != nullptr) [[likely]] {
    return block;
  }
  Bin& bin = heap->bins[class_at(place)];
  if (const std::uint32_t left = bin.left; left != 0) {
    char* const block = bin.bump;
    bin.left = left - 1;
    bin.bump = block + bin.block_bytes;
    return block;
  }
  return nullptr;
}

/// What free_to_slab does when a slab's `used` fell to `notify`. The block is in the slab's list already.
[[gnu::noinline]] void free_slow(ThreadHeap* heap, Slab* slab);

/// Puts a block back into its slab, the owner's thread only.
[[gnu::always_inline]] inline void free_to_slab(ThreadHeap* heap, void* block, Slab* slab) {
  const auto to_limit = static_cast<std::uint32_t>(slab->limit - static_cast<char*>(block));
  if (check_begin && !is_multiple(to_limit, slab->inverse)) [[unlikely]] {
    report_inside(block);
  }
  if (check_links && has_link(slab, block)) [[unlikely]] {
    report_freed_twice(block);
  }
  write_link(block, slab->free, slab->key);
  slab->free = block;
  if (--slab->used == slab->notify) [[unlikely]] {
    free_slow(heap, slab);
  }
}

/// Puts another thread's block back into its slab; null: does nothing.
[[gnu::noinline]] void free_to_other(ThreadHeap* heap, void* block);

/// Puts a block into the deferred-free buffer; the oldest there goes back into its slab.
[[gnu::always_inline]] inline void defer_free(ThreadHeap* heap, void* block, Slab* slab) {
  auto& deferred = heap->deferred;
  static_assert(most_deferred == 8);  // in a loop it would be a call of memmove
  const DeferredFree oldest = deferred[0];
  deferred[0] = deferred[1];
  deferred[1] = deferred[2];
  deferred[2] = deferred[3];
  deferred[3] = deferred[4];
  deferred[4] = deferred[5];
  deferred[5] = deferred[6];
  deferred[6] = deferred[7];
  using Whole = std::uintptr_t __attribute__((vector_size(sizeof(DeferredFree))));
  const Whole newest{reinterpret_cast<std::uintptr_t>(block), reinterpret_cast<std::uintptr_t>(slab)};
  deferred[most_deferred - 1] = std::bit_cast<DeferredFree>(newest);
  if (oldest.slab != nullptr) [[likely]] {
    free_to_slab(heap, oldest.block, oldest.slab);
  } else {
    free_to_other(heap, oldest.block);
  }
}

/// Frees another thread's block for which the cache has no room: by way of the depot where blocks of its class are
/// wanted, else by way of the deferred-free buffer. O(1). `heap` may be the empty one, which never has room.
[[gnu::noinline]] void free_other_past_cache(ThreadHeap* heap, void* block, unsigned size_class);

/// Frees a block of the heap's own for which not even the cache of a class freed and allocated in turn has room. That
/// holds one fewer from now on: who frees a level would be left with them, each in a slab that holds nothing else.
/// O(1).
[[gnu::noinline]] void free_past_turn(ThreadHeap* heap, void* block, unsigned size_class);

/// Frees a block of any thread's heap for which the cache has no room. O(1).
[[gnu::noinline]] inline void free_past_cache(ThreadHeap* heap, void* block) {
  if (check_last_freed && heap->deferred[most_deferred - 1].block == block) [[unlikely]] {
    report_freed_twice(block);
  }
  const std::size_t slice = region.slice_of(block);
  const Owner owner = region.owner_of(slice);
  if (owner.heap() != heap->index) [[unlikely]] {
    free_other_past_cache(heap, block, owner.size_class());
    return;
  }
  if ((heap->in_turn >> owner.size_class() & 1) != 0) [[unlikely]] {
    free_past_turn(heap, block, owner.size_class());
    return;
  }
  ++heap->entries[owner.size_class()].past;
  Slab* const slab = &region.slabs[slice - owner.back()];
  prefetch_to_write(slab);
  if (check_links) {
    prefetch_to_write(block);  // which is read when it goes back into the slab
  }
  defer_free(heap, block, slab);
}

/// What a free does where the block seems to be one of the two that were cached last: reports it, or caches it.
[[gnu::noinline]] void free_perhaps_again(ThreadHeap* heap, void* block, std::size_t place);
/// Reports it. That it does not return is not said here, so that free_small can jump to it and keeps no stack frame.
void free_inside(const void* block);

/// Frees a small block out of a slab of any thread's heap: `heap` caches it, at `place`, that of its class.
[[gnu::always_inline]] inline void free_small(ThreadHeap* heap, void* block, std::size_t place) {
  void* const newest = heap->entry_at(place).newest;
  if (check_last_freed && newest == block) [[unlikely]] {
    free_perhaps_again(heap, block, place);
    return;
  }
  if (check_begin && (reinterpret_cast<std::uintptr_t>(block) & heap->entry_at(ThreadHeap::apart(place)).inside) != 0)
      [[unlikely]] {
    free_inside(block);
    return;
  }
  const std::size_t second = heap->entry_at(ThreadHeap::apart(place)).second;
  // Where no second newest is cached, what stands there may be anything.
  if (check_last_freed && heap->at(second) == block) [[unlikely]] {
    free_perhaps_again(heap, block, place);
    return;
  }
  if (second >= heap->entry_at(ThreadHeap::apart(place)).last) {
    free_past_cache(heap, block);
    return;
  }
  heap->at(second + 1) = newest;
  heap->entry_at(ThreadHeap::apart(place)).second = static_cast<std::uint16_t>(second + 1);
  heap->entry_at(ThreadHeap::apart(place)).newest = block;
}

/// Puts a block back into its slab, whosever that is.
void free_to_any_slab(ThreadHeap* heap, void* block);

}  // namespace blockyard::heap
