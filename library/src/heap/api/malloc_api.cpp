// by_malloc and its kin: fast paths, and the ways out of them.
#include "blockyard/heap.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/kept_errno.hpp"
#include "checks/report.hpp"
#include "heap/api/slow_calls.hpp"
#include "heap/api/start.hpp"
#include "heap/background/background_thread.hpp"
#include "heap/background/maintenance.hpp"
#include "heap/front/large_blocks.hpp"
#include "heap/front/small_blocks.hpp"
#include "heap/pages/page_allocator.hpp"

using namespace blockyard::heap;
namespace checks = blockyard::checks;

namespace {

// What SlowCalls says of them.
struct Plain {
  static void* allocate_small(std::size_t size);
  static void* allocate_large(std::size_t size, std::size_t alignment, bool* zeroed);
  static void* allocate_aligned(std::size_t alignment, std::size_t size);
  static void deallocate(void* block);
  [[gnu::always_inline]] static inline std::size_t usable(const void* block);
  static void* reallocate(void* block, std::size_t size);
};
using Slow = SlowCalls<Plain>;

// The plain case of allocate_small: a block that this thread freed, out of the current slab. It keeps no stack frame
// and calls nothing: a program that allocates more blocks in a row than are cached comes here with each.
[[gnu::noinline]] void* small_from_slab(std::size_t size, ThreadHeap* heap, CacheSlot slot) {
  Slab* const slab = heap->bins[slot.size_class()].current;
  void* const block = slab->free;
  if (block != slab->limit && heap->past(slot) == 0) [[likely]] {
    if (const std::uintptr_t next = decoded(block, slab->key); is_link(slab, next)) [[likely]] {
      take_first_freed(slab, next);
      ++slab->used;
      return block;
    }
  }
  return Slow::allocate_small(size);
}

[[gnu::always_inline]] inline void* small(std::size_t size, CacheSlot slot) {
  ThreadHeap* const heap = thread_heap;
  if (void* const block = from_cache(heap, slot); block != nullptr) [[likely]] {
    return block;
  }
  return small_from_slab(size, heap, slot);
}

[[gnu::always_inline]] inline void* allocate(std::size_t size) {
  // Nine of ten allocations are of these sizes: no comparison, no jump more for them.
  if (size <= looked_up_limit) [[likely]] {
    return small(size, CacheSlot::of_size(size));
  }
  if (size <= small_limit) [[likely]] {
    return small(size, CacheSlot::of_class(class_of(size)));
  }
  return Slow::allocate_large(size, block_alignment, nullptr);
}

[[gnu::always_inline]] inline void deallocate(void* block) {
  if (check_range ? region.contains_aligned(block) : block != nullptr) [[likely]] {
    // Another thread's block is as good as one's own: caching it takes no atomic operation, and it is handed out again
    // while its line is warm. To its slab it stays in use.
    if (const CacheSlot slot = region.cache_slot_of(block)) [[likely]] {
      ThreadHeap* const heap = thread_heap;
      free_small(heap, block, slot);
      return;
    }
  }
  if (block != nullptr) {
    Slow::deallocate(block);
  }
}

[[gnu::noinline]] void* resize_or_move(void* block, std::size_t room, std::size_t size) {
  if (room > small_limit && size > small_limit && resize_run(block, size)) {
    return block;
  }
  const int error = errno;
  void* const moved = allocate(size);
  if (moved == nullptr) {
    if (size > room && (room <= small_limit || !grow_run_at_limit(block, size))) {
      return nullptr;
    }
    errno = error;
    return block;  // it fits where it lies, perhaps with what the background thread had
  }
  std::memcpy(moved, block, room < size ? room : size);
  deallocate(block);
  return moved;
}

void* Plain::allocate_small(std::size_t size) {
  const unsigned size_class = class_of(size);
  if (size == 0) {
    // As any small block where there is none of them left, or none is told from others when it is freed.
    void* const block = check_range ? take_empty_block() : nullptr;
    return block != nullptr ? block : allocate(1);
  }
  void* block = tend_background_thread() ? from_cache(thread_heap, CacheSlot::of_class(size_class)) : nullptr;
  if (block == nullptr) [[likely]] {
    block = refill_and_take(thread_heap, size_class);
  }
  return block != nullptr ? block : at_limit(thread_heap, [=] { return refill_and_take(thread_heap, size_class); });
}

void* Plain::allocate_large(std::size_t size, std::size_t alignment, bool* zeroed) {
  if (size > PTRDIFF_MAX || !initialise()) {
    return exhausted();
  }
  page_allocator.prefetch(size);
  if (alignment <= page_bytes) {
    if (void* const block = take_cached_run(size); block != nullptr) {
      return block;
    }
  }
  tend_background_thread();
  const auto attempt = [=] { return take_run(size, alignment, zeroed, nullptr); };
  void* const block = attempt();
  return block != nullptr ? block : at_limit(thread_heap, attempt);
}

void* Plain::allocate_aligned(std::size_t alignment, std::size_t size) {
  if (const unsigned index = aligned_class(alignment, size); index < class_count) {
    return allocate(class_bytes(index));
  }
  if (size > PTRDIFF_MAX - alignment) {
    return exhausted();
  }
  return allocate_large(std::max(size, small_limit + 1), alignment, nullptr);
}

// Frees that are not the plain case: an arena's block, one of 0 bytes, whole pages, or a pointer that is not ours.
void Plain::deallocate(void* block) {
  if (!region.contains(block)) {
    checks::report_fault("free of a pointer that this heap never handed out", block);
  }
  if (!region.contains_aligned(block)) {
    report_inside(block);
  }
  if (region.owner_of(region.slice_of(block)).heap() != 0) {
    free_remote(block);  // of an arena, which may be destroyed meanwhile: nobody caches it
    return;
  }
  if (is_among_empty_blocks(block)) {
    give_empty_block(block);
    return;
  }
  free_run(block);
  tend_background_thread();
}

std::size_t Plain::usable(const void* block) {
  if (!region.contains(block)) {
    checks::report_fault("size asked of a pointer that this heap never handed out", block);
  }
  const std::size_t slice = region.slice_of(block);
  if (const Owner owner = region.owner_of(slice); owner.heap() != 0) [[likely]] {
    const unsigned size_class = owner.size_class();
    const auto distance =
        static_cast<std::uint32_t>(static_cast<const char*>(block) - region.slice_address(slice - owner.back()));
    if (check_begin && !is_multiple(distance, class_inverse(size_class))) {
      checks::report_fault("size asked of a pointer into the middle of a block", block);
    }
    if (check_last_freed && thread_heap->newest(CacheSlot::of_class(size_class)) == block) {
      checks::report_fault("size asked of a block that was freed already", block);
    }
    return class_bytes(size_class);
  }
  return is_live_run(block) ? run_bytes(block) : usable_of_empty_block(block);
}

void* Plain::reallocate(void* block, std::size_t size) {
  const std::size_t room = usable(block);
  // In place while at most half of the block would lie idle: moving costs more than the room is worth.
  if (size <= room && (size > room / 2 || room <= 64)) {
    return block;
  }
  return resize_or_move(block, room, size);
}

}  // namespace

extern "C" {

// Of all heaps in the process, each with a mark of this name, the dynamic linker takes one: whose by_malloc is called.
// The alias is always this heap's own.
extern const char by_heap_mark __attribute__((visibility("default")));
constinit const char by_heap_mark = 0;
extern const char by_heap_own_mark __attribute__((alias("by_heap_mark"), visibility("hidden")));

void* by_malloc(size_t size) { return allocate(size); }

void by_free(void* block) { deallocate(block); }

void* by_calloc(size_t count, size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    return exhausted();
  }
  if (bytes <= small_limit) {
    void* const block = allocate(bytes);
    return block == nullptr ? nullptr : std::memset(block, 0, bytes);
  }
  bool zeroed = false;
  void* const block = Slow::allocate_large(bytes, block_alignment, &zeroed);
  if (block != nullptr && !zeroed) {
    clear_run(block, bytes);
  }
  return block;
}

void* by_realloc(void* block, size_t size) {
  if (block == nullptr) {
    return allocate(size);
  }
  return Slow::reallocate(block, size);
}

void* by_aligned_alloc(size_t alignment, size_t size) {
  if (!std::has_single_bit(alignment)) {
    return blockyard::base::failed(EINVAL);
  }
  if (alignment <= block_alignment) {
    return allocate(size);
  }
  // While the guard is on, the thread has nothing cached that this finds.
  if (const unsigned index = aligned_class(alignment, size); index < class_count) {
    if (void* const block = from_cache(thread_heap, CacheSlot::of_class(index)); block != nullptr) [[likely]] {
      return block;
    }
  }
  return Slow::allocate_aligned(alignment, size);
}

size_t by_usable_size(const void* block) { return block == nullptr ? 0 : Slow::usable(block); }

void by_free_sized(void* block, [[maybe_unused]] size_t size) {
#if BLOCKYARD_CHECKED
  guard::check_size(block, size);
#endif
  deallocate(block);
}

}  // extern "C"
