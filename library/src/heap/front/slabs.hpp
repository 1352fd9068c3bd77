// The slabs of a thread's heap: taken from the page allocator, put into the heap's lists, and given back when nothing
// lives in them. For each class one slab is current; the others with room are listed, those without are detached until
// a block comes back. All O(1), for the thread that owns the heap.
#pragma once

#include <cstdint>

#include "heap/front/free_links.hpp"
#include "heap/front/thread_heap.hpp"
#include "heap/slab_tables.hpp"

namespace blockyard::heap {

/// Place of a slab's record in the region's table: its first slice.
inline std::uint32_t index_of(const Slab* slab) { return static_cast<std::uint32_t>(slab - region.slabs); }

/// Whether the slab has a block to give, known to its owner.
inline bool has_room(const Slab* slab) { return slab->free != slab->limit || slab->bump != slab->limit; }

/// Puts a slab that stands in no list into the one of `state`: listed or detached.
void link(ThreadHeap* heap, Slab* slab, SlabState state);
void unlink(ThreadHeap* heap, Slab* slab);

/// Gives a slab that stands in no list back to the process.
void retire(ThreadHeap* heap, Slab* slab);
/// Gives a listed slab without used blocks back, unless no other of its class is listed: a program that goes to and fro
/// at a slab's edge would otherwise take and give one back each time.
void retire_unless_last(ThreadHeap* heap, Slab* slab);

/// A slab with room for the class, in no list: a listed one, or a fresh one. Null when memory is exhausted.
Slab* next_slab(ThreadHeap* heap, unsigned size_class);
/// From here on the heap allocates from `slab`, which has handed out none of its blocks or each at least once. Unused
/// blocks are the bin's to give, all at once: they count as used, so that giving one does not touch the slab.
void make_current(Bin& bin, Slab* slab);

/// What follows a block of `free` that another thread freed, as the owner's links have it; or the report that the block
/// holds no link.
[[gnu::noinline]] std::uintptr_t link_of_another_thread(const Slab* slab, const void* block);

/// Takes the first of the freed blocks, which `next` follows. The caller counts it.
[[gnu::always_inline]] inline void take_first_freed(Slab* slab, std::uintptr_t next) {
  *static_cast<std::uintptr_t*>(slab->free) = 0;  // a program that writes nothing there may free it
  slab->free = reinterpret_cast<void*>(next);
  // The next of these calls reads its link out of the next block: let the line come until then.
  __builtin_prefetch(slab->free);
}
/// A freed block out of the slab, or null. The caller counts it.
[[gnu::always_inline]] inline void* take_freed(Slab* slab) {
  void* const block = slab->free;
  if (block == slab->limit) {
    return nullptr;
  }
  std::uintptr_t next = decoded(block, slab->key);
  if (!is_link(slab, next)) [[unlikely]] {
    next = link_of_another_thread(slab, block);
  }
  take_first_freed(slab, next);
  return block;
}

/// Adopts the remote frees of at most `most` announced slabs, for the thread that owns the heap. Returns of how many.
std::uint32_t adopt_pending(ThreadHeap* heap, std::uint32_t most);

/// Calls `visit(const Slab*)` for every slab of the heap. O(slabs).
template <class Visit>
void for_each_slab(const ThreadHeap* heap, Visit&& visit) {
  for (unsigned size_class = 0; size_class < class_count; ++size_class) {
    if (const Slab* const current = heap->bins[size_class].current; current != &empty_slab) {
      visit(current);
    }
    for (std::uint32_t index = heap->waiting[size_class].listed; index != 0; index = region.slabs[index].next) {
      visit(&region.slabs[index]);
    }
  }
  for (std::uint32_t index = heap->detached; index != 0; index = region.slabs[index].next) {
    visit(&region.slabs[index]);
  }
}

}  // namespace blockyard::heap
