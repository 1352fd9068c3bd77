// The API of heap.h: fast paths, and the ways out of them.
#include "heap/checked/plain_names.hpp"
// Above: in checked builds the functions below have other names.
#include "blockyard/heap.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/pages.hpp"
#include "heap/depot.hpp"
#include "heap/fault.hpp"
#include "heap/janitor.hpp"
#include "heap/maintenance.hpp"
#include "heap/process_heap.hpp"

using namespace blockyard::heap;

namespace {

[[gnu::noinline, gnu::cold]] void* exhausted() {
  errno = ENOMEM;
  return nullptr;
}

[[gnu::noinline]] void* allocate_small_slow(std::size_t size) {
  const unsigned size_class = class_of(size);
  void* block = start_janitor_if_due() ? allocate_small(thread_heap, row_place(size_class)) : nullptr;
  if (block == nullptr) {
    block = allocate_slow(thread_heap, size_class);
  }
  return block != nullptr ? block : exhausted();
}

// A freed block of so many whole pages that the thread kept, or null.
void* take_run(ThreadHeap* heap, std::size_t size) {
  const std::size_t pages = (size + page_bytes - 1) >> page_shift;
  if (pages > longest_run) {
    return nullptr;
  }
  void*& place = heap->runs[pages - shortest_run];
  void* const block = place;
  if (block != nullptr) {  // never in the empty heap, which all threads share and nobody may write
    place = nullptr;
    region.pages[region.page_of(block)].flags &= static_cast<std::uint8_t>(~page_kept);
  }
  return block;
}

// Keeps a freed block of whole pages that are populated, where none of its length is kept yet.
bool keep_run(ThreadHeap* heap, void* block, PageTag& tag) {
  if (tag.length > longest_run || tag.length < shortest_run || tag.flags != page_populated || heap == &empty_heap) {
    return false;
  }
  void*& place = heap->runs[tag.length - shortest_run];
  if (place != nullptr) {
    return false;
  }
  tag.flags |= page_kept;
  place = block;
  return true;
}

[[gnu::noinline]] void* allocate_large(std::size_t size, std::size_t alignment, bool* zeroed,
                                       ThreadHeap* owner = nullptr) {
  if (size > PTRDIFF_MAX) {
    return exhausted();
  }
  process_heap.prefetch_pages(size);
  if (owner == nullptr && alignment <= page_bytes) {
    if (void* const block = take_run(thread_heap, size); block != nullptr) {
      return block;
    }
  }
  start_janitor_if_due();
  void* const block = process_heap.allocate_pages(size, alignment, zeroed, owner);
  return block != nullptr ? block : exhausted();
}

[[gnu::always_inline]] inline void* allocate(std::size_t size) {
  // Nine of ten allocations are of these sizes: no comparison, no jump more for them.
  if (size <= looked_up_limit) [[likely]] {
    if (void* const block = allocate_small(thread_heap, place_table[(size + 15) / 16]); block != nullptr) [[likely]] {
      return block;
    }
    return allocate_small_slow(size);
  }
  if (size <= small_limit) [[likely]] {
    if (void* const block = allocate_small(thread_heap, row_place(class_of_computed(size))); block != nullptr)
        [[likely]] {
      return block;
    }
    return allocate_small_slow(size);
  }
  return allocate_large(size, block_alignment, nullptr);
}

// The smallest class whose blocks are all aligned so: a slab begins at a multiple of 16 KiB, so its size must be a
// multiple of the alignment. class_count when no class serves.
unsigned aligned_class(std::size_t alignment, std::size_t size) {
  if (alignment > small_limit || size > small_limit) {
    return class_count;
  }
  return class_of(((size == 0 ? 1 : size) + alignment - 1) & ~(alignment - 1));
}

// The least class that holds a multiple of an alignment is one itself: none has to be looked for.
static_assert([] {
  for (std::size_t alignment = block_alignment; alignment <= small_limit; alignment *= 2) {
    for (std::size_t size = alignment; size <= small_limit; size += alignment) {
      if (class_bytes(class_of_computed(size)) % alignment != 0) {
        return false;
      }
    }
  }
  return true;
}());

// Frees that are not the plain case: another thread's block, whole pages, null, or a pointer that is not ours.
[[gnu::noinline]] void free_elsewhere(void* block) {
  if (block == nullptr) {
    return;
  }
  if (!region.contains(block)) {
    report_fault("free of a pointer that this heap never handed out", block);
  }
  const std::size_t granule = region.granule_of(block);
  if (const Owner owner = region.owner_of(granule); owner.heap() != 0) {
    // Of a heap of one's own, which may be destroyed meanwhile: nobody keeps it at hand.
    free_remote(nullptr, block, static_cast<std::uint32_t>(granule));
    return;
  }
  const std::size_t page = region.page_of(block);
  PageTag& tag = region.pages[page];
  if (region.page_address(page) != block || tag.state != static_cast<std::uint8_t>(PageState::used_block) ||
      (tag.flags & page_kept) != 0) {
    report_fault("free of a pointer that is no live block (freed twice, or inside a block)", block);
  }
  if (keep_run(thread_heap, block, tag)) {
    return;
  }
  process_heap.free_pages(block);
  start_janitor_if_due();
}

[[gnu::always_inline]] inline void deallocate(void* block) {
  if (check_range ? region.contains(block) : block != nullptr) [[likely]] {
    // Another thread's block is as good as one's own: kept at hand it takes no atomic operation and is handed out again
    // while its line is warm. To its slab it stays in use.
    if (const std::size_t place = region.row_at(block); place != 0) [[likely]] {
      ThreadHeap* const heap = thread_heap;
      free_small(heap, block, place);
      return;
    }
  }
  free_elsewhere(block);
}

std::size_t usable(const void* block) {
  if (block == nullptr) {
    return 0;
  }
  if (!region.contains(block)) {
    report_fault("size asked of a pointer that this heap never handed out", block);
  }
  const std::size_t granule = region.granule_of(block);
  if (const Owner owner = region.owner_of(granule); owner.heap() != 0) {
    return class_bytes(owner.size_class());
  }
  return std::size_t{region.pages[region.page_of(block)].length} << page_shift;
}

[[gnu::noinline]] void* move_block(void* block, std::size_t room, std::size_t size) {
  void* const moved = allocate(size);
  if (moved != nullptr) {
    std::memcpy(moved, block, room < size ? room : size);
    deallocate(block);
  }
  return moved;
}

void before_fork() {
  process_heap.sweep_lock.lock();
  process_heap.pages.lock().lock();
}
void after_fork_in_parent() {
  process_heap.pages.lock().unlock();
  process_heap.sweep_lock.unlock();
}
void after_fork_in_child() {
  process_heap.pages.lock().unlock_in_child();
  process_heap.sweep_lock.unlock();
  depot.mend_in_child();
  maintenance.forget();
  forget_janitor();
}

// Readies the heap before main, where a few system calls and the first reserve cost nobody a frame.
[[gnu::constructor]] void start() {
  process_heap.initialise();
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  allow_janitor();
}

}  // namespace

extern "C" {

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
  void* const block = allocate_large(bytes, block_alignment, &zeroed);
  if (block != nullptr && !zeroed) {
    std::memset(block, 0, bytes);
  }
  return block;
}

void* by_realloc(void* block, size_t size) {
  if (block == nullptr) {
    return allocate(size);
  }
  const std::size_t room = usable(block);
  // In place while at most half of the block would lie idle: moving costs more than the room is worth.
  if (size <= room && (size > room / 2 || room <= 64)) {
    return block;
  }
  if (room > small_limit && size > small_limit) {
    const auto first = static_cast<std::uint32_t>(region.page_of(block));
    const auto length = static_cast<std::uint32_t>((size + page_bytes - 1) >> page_shift);
    if (size <= room) {
      const bool populated = region.pages[first].flags != 0;
      process_heap.pages.shrink(first, length, populated ? PageState::free_ready : PageState::free_stale);
      return block;
    }
    if (size < region.bytes && process_heap.pages.grow(first, length)) {
      return block;
    }
  }
  return move_block(block, room, size);
}

void* by_aligned_alloc(size_t alignment, size_t size) {
  if (!std::has_single_bit(alignment)) {
    errno = EINVAL;
    return nullptr;
  }
  if (alignment <= block_alignment) {
    return allocate(size);
  }
  if (const unsigned index = aligned_class(alignment, size); index < class_count) {
    return allocate(class_bytes(index));
  }
  if (size > PTRDIFF_MAX - alignment) {
    return exhausted();
  }
  const std::size_t bytes = size > small_limit ? size : small_limit + 1;
  return allocate_large(bytes, alignment, nullptr);
}

size_t by_usable_size(const void* block) { return usable(block); }

void by_free_sized(void* block, size_t) { deallocate(block); }

by_arena* by_arena_create(void) {
  ThreadHeap* const heap = process_heap.make_own_heap();
  if (heap == nullptr) {
    errno = ENOMEM;
  }
  return reinterpret_cast<by_arena*>(heap);
}

void by_arena_destroy(by_arena* heap) {
  if (heap != nullptr) {
    process_heap.destroy_own_heap(reinterpret_cast<ThreadHeap*>(heap));
  }
}

void by_arena_free(by_arena* heap, void* block) {
  auto* const own = reinterpret_cast<ThreadHeap*>(heap);
  if (region.contains(block)) {
    if (const Owner owner = region.owner_of(region.granule_of(block)); owner.heap() == own->index) {
      free_small(own, block, row_place(owner.size_class()));
      return;
    }
  }
  deallocate(block);
}

void* by_arena_alloc(by_arena* heap, size_t size) {
  auto* const own = reinterpret_cast<ThreadHeap*>(heap);
  if (size > small_limit) {
    return allocate_large(size, block_alignment, nullptr, own);
  }
  const unsigned size_class = class_of(size);
  void* block = allocate_small(own, row_place(size_class));
  if (block == nullptr) {
    start_janitor_if_due();
    block = allocate_slow(own, size_class);
  }
  return block != nullptr ? block : exhausted();
}

void* by_arena_calloc(by_arena* heap, size_t count, size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    return exhausted();
  }
  void* const block = by_arena_alloc(heap, bytes);
  return block == nullptr ? nullptr : std::memset(block, 0, bytes);
}

void* by_arena_aligned_alloc(by_arena* heap, size_t alignment, size_t size) {
  if (!std::has_single_bit(alignment)) {
    errno = EINVAL;
    return nullptr;
  }
  if (alignment <= block_alignment) {
    return by_arena_alloc(heap, size);
  }
  if (const unsigned index = aligned_class(alignment, size); index < class_count) {
    return by_arena_alloc(heap, class_bytes(index));
  }
  if (size > PTRDIFF_MAX - alignment) {
    return exhausted();
  }
  return allocate_large(size > small_limit ? size : small_limit + 1, alignment, nullptr,
                        reinterpret_cast<ThreadHeap*>(heap));
}

void by_heap_reserve(size_t bytes) {
  // More than there is would be populated until the system ends the process.
  if (process_heap.initialise() && bytes <= std::min(region.bytes, blockyard::base::memory_of_machine())) {
    process_heap.demand.keep_ready(bytes);
    wake_janitor();
    start_janitor_if_due();
  }
}

int by_heap_prefault(size_t bytes) {
  if (process_heap.initialise() && maintenance.prefault(bytes)) {
    return 0;
  }
  errno = ENOMEM;
  return -1;
}

size_t by_heap_trim(void) { return process_heap.initialise() ? maintenance.trim() : 0; }

void by_heap_frame_end(uint64_t budget_ns) {
  if (thread_heap != &empty_heap) {
    // One list at a time, so that the clock is looked at often enough for any budget.
    const std::uint64_t started = blockyard::base::monotonic_ns();
    while (adopt_pending(thread_heap, 1) != 0 && blockyard::base::monotonic_ns() - started < budget_ns) {
    }
  }
  if (!settings.janitor && process_heap.initialise()) {
    maintenance.run(budget_ns);
  }
}

}  // extern "C"
