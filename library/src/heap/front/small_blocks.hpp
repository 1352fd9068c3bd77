// Blocks up to small_limit: what the fast paths of malloc and free (thread_heap.hpp) fall back on.
//
// Bound: allocate and free are O(1), without a lock, and on the fast paths without an atomic read-modify-write. At most
// two lists of remote frees are adopted on a slow path. A fresh slab comes from the ready stack (lock-free), and only
// when that is empty from the page heap (one lock, O(1)).
//
// The slabs of a thread's heap: taken from the page allocator, put into the heap's lists, and given back when nothing
// lives in them. For each class one slab is current; the others with room are listed, those without are detached until
// a block comes back. All O(1), for the thread that owns the heap.
#pragma once

#include <cstdint>

#include "heap/front/thread_heap.hpp"
#include "heap/slab_tables.hpp"

namespace blockyard::heap {

/// Allocates when from_cache() found nothing. `heap` may be the empty one, the thread then takes a heap. Null when
/// memory is exhausted.
void* refill_and_take(ThreadHeap* heap, unsigned size_class);
/// Puts a block back into its slab, whosever that is.
void free_to_any_slab(ThreadHeap* heap, void* block);
/// Frees a small block into the remote-free list of its slab, whose class it returns in `*size_class`. Lock-free. True
/// where it is the first since the owner last adopted from the slab.
bool free_remote(void* block, unsigned* size_class = nullptr);

/// Place of a slab's record in the region's table: its first slice.
inline std::uint32_t index_of(const Slab* slab) { return static_cast<std::uint32_t>(slab - region.slabs); }

/// Whether the slab has a block to give, known to its owner.
inline bool has_room(const Slab* slab) { return slab->free != slab->limit || slab->bump != slab->limit; }

/// Gives a slab back to the process.
void retire(ThreadHeap* heap, Slab* slab);

/// Takes the first of the freed blocks, which `next` follows. The caller counts it.
[[gnu::always_inline]] inline void take_first_freed(Slab* slab, std::uintptr_t next) {
  *static_cast<std::uintptr_t*>(slab->free) = 0;  // a program that writes nothing there may free it
  slab->free = reinterpret_cast<void*>(next);
  // The next of these calls reads its link out of the next block: let the line come until then.
  __builtin_prefetch(slab->free);
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

// --- a whole heap that no thread has, or that nobody uses at the moment (heap_contents.cpp) ---

/// Puts all cached and deferred blocks back into their slabs, and gives the process every slab that is then empty. At
/// most 64 KiB of each class, 1,024 blocks at most, and 8 more, and the empty slabs. For a heap that no thread has.
void flush(ThreadHeap* heap);

/// Gives every slab back, whatever lives in them. Nobody may use or free into the heap meanwhile. O(slabs).
void retire_all(ThreadHeap* heap);

/// Bytes of live blocks in the heap's slabs; racy while its thread runs. O(slabs).
std::uint64_t live_bytes(const ThreadHeap* heap);

/// A cached block that is cached twice, or is free in its slab too, since it was freed twice; null: none. O(cached
/// blocks), 1,024 squared a class.
const void* freed_twice(const ThreadHeap* heap);
/// A cached block that the heap did not hand out before it was freed; null: none. O(cached blocks).
const void* never_handed_out(const ThreadHeap* heap);
/// A block in the list of a current slab, or of the next, that was written to after its free; null: none. O(blocks of
/// two slabs a class).
const void* written_after_free(const ThreadHeap* heap);

/// Walks one heap that nobody uses at this moment. Null, or what is broken. O(its blocks).
const char* check(const ThreadHeap* heap);
/// Likewise of a block that waits in the depot.
const char* check_handed_over(const void* block, unsigned size_class);

}  // namespace blockyard::heap
