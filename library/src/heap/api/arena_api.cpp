// by_arena_...: heaps that no thread has.

#include <bit>
#include <cstdint>

#include "base/kept_errno.hpp"
#include "blockyard/heap.h"
#include "heap/api/start.hpp"
#include "heap/background/background_thread.hpp"
#include "heap/front/heap_table.hpp"
#include "heap/front/large_blocks.hpp"
#include "heap/front/small_blocks.hpp"
#include "heap/guard/guard.hpp"
#include "heap/pages/page_allocator.hpp"

using namespace blockyard::heap;

namespace {

ThreadHeap* heap_of(by_arena* arena) { return reinterpret_cast<ThreadHeap*>(arena); }

void* or_exhausted(void* block) { return block != nullptr ? block : blockyard::base::failed(ENOMEM); }

void* allocate(ThreadHeap* arena, std::size_t size, std::size_t alignment, bool* zeroed = nullptr) {
  if (guard::thorough) {
    return guard::allocate(size, alignment, zeroed, arena);
  }
  if (size > PTRDIFF_MAX) {
    return nullptr;
  }
  if (size > small_limit) {
    page_allocator.prefetch(size);
    tend_background_thread();
    return take_run(size, alignment, zeroed, arena);
  }
  const unsigned size_class = class_of(size);
  void* const block = from_cache(arena, CacheSlot::of_class(size_class));
  if (block != nullptr) {
    return block;
  }
  tend_background_thread();
  return refill_and_take(arena, size_class);
}

}  // namespace

extern "C" {

by_arena* by_arena_create(void) {
  ThreadHeap* const arena = initialise() ? process_heaps.take_empty() : nullptr;
  if (arena == nullptr) {
    return blockyard::base::failed(ENOMEM);
  }
  arena->is_arena = true;
  return reinterpret_cast<by_arena*>(arena);
}

void by_arena_destroy(by_arena* arena) {
  if (arena == nullptr) {
    return;
  }
  ThreadHeap* const heap = heap_of(arena);
#if BLOCKYARD_CHECKED
  guard::forget_blocks_of(heap);
#endif
  retire_all(heap);
  free_runs_of(heap);
  heap->is_arena = false;
  process_heaps.park_empty(heap);
}

void by_arena_free(by_arena* arena, void* block) {
  ThreadHeap* const heap = heap_of(arena);
  if (!guard::thorough && region.contains(block)) {
    if (const Owner owner = region.owner_of(region.slice_of(block)); owner.heap() == heap->index) {
      free_small(heap, block, CacheSlot::of_class(owner.size_class()));
      return;
    }
  }
  by_free(block);
}

void* by_arena_alloc(by_arena* arena, size_t size) {
  return or_exhausted(allocate(heap_of(arena), size, block_alignment));
}

void* by_arena_calloc(by_arena* arena, size_t count, size_t size) {
  std::size_t bytes = 0;
  bool zeroed = false;
  void* const block = or_exhausted(__builtin_mul_overflow(count, size, &bytes)
                                       ? nullptr
                                       : allocate(heap_of(arena), bytes, block_alignment, &zeroed));
  if (block != nullptr && !zeroed) {
    clear_run(block, bytes);
  }
  return block;
}

void* by_arena_aligned_alloc(by_arena* arena, size_t alignment, size_t size) {
  if (!std::has_single_bit(alignment)) {
    return blockyard::base::failed(EINVAL);
  }
  if (alignment <= block_alignment) {
    return by_arena_alloc(arena, size);
  }
  if (guard::thorough) {
    return or_exhausted(allocate(heap_of(arena), size, alignment));
  }
  if (const unsigned index = aligned_class(alignment, size); index < class_count) {
    return by_arena_alloc(arena, class_bytes(index));
  }
  const std::size_t bytes = size > PTRDIFF_MAX - alignment ? SIZE_MAX : size > small_limit ? size : small_limit + 1;
  return or_exhausted(allocate(heap_of(arena), bytes, alignment));
}

}  // extern "C"
