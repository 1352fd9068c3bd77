// The part of the heap that one thread owns: a current slab for every size class, and the slabs that wait behind it.
//
// Bound: allocate and free of a small block are O(1), without a lock and without an atomic read-modify-write on the
// owner's thread; at most two lists of remote frees are adopted a slow path. A fresh slab comes from the ready stack
// (lock-free), and only when that is empty from the page heap (one lock, O(1)). Overhead: 96 bytes for every 16 KiB of
// slabs, at most one partly used slab for every size class in use.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "heap/atomic.hpp"
#include "heap/region.hpp"
#include "heap/size_class.hpp"

namespace blockyard::heap {

enum class SlabState : std::uint8_t {
  none = 0,
  current,   ///< its heap allocates from it
  listed,    ///< has room, waits in its heap's list
  detached,  ///< had no room when its heap left it: waits until a block comes back
};

inline constexpr std::uint32_t notify_never = 0xFFFF'FFFFu;  ///< `used` never falls to this

struct ThreadHeap {
  constexpr explicit ThreadHeap(Slab* nothing) { current.fill(nothing); }

  std::array<Slab*, class_count> current{};         ///< never null: the empty slab where there is none
  std::array<std::uint32_t, class_count> listed{};  ///< slabs with room: first of each class (granule index, 0 is none)
  alignas(64) Atomic<std::uint32_t> pending{0};     ///< slabs with remote frees, pushed by other threads
  Atomic<std::uint32_t> parked_next{0};             ///< link in the stack of parked heaps
  std::uint32_t index = 0;                          ///< in the heap table
  alignas(64) std::uint32_t taken = 0;              ///< announced slabs taken from `pending`, adopted one at a time
  std::uint32_t detached = 0;                       ///< slabs without room, all classes
  std::uint32_t blocks = 0;                         ///< own heaps: blocks of whole pages, under the page heap's lock
  bool own = false;                                 ///< made by by_heap_create, no thread's
  std::uint32_t slabs = 0;                          ///< slabs owned
  std::uint64_t remote_adopted = 0;                 ///< blocks that other threads freed and this heap took back
};

/// A slab with no room at all, and a heap that has only such slabs and owns nothing: what a thread has before its first
/// allocation, so that the fast path needs no branch for it.
extern Slab empty_slab;
extern ThreadHeap empty_heap;

/// The calling thread's heap; the empty one before the first allocation and after the thread's end has begun.
extern constinit thread_local ThreadHeap* thread_heap __attribute__((tls_model("initial-exec")));

/// Encodes the links of free lists: a block that is written after its free no longer leads the allocator where an
/// attacker wants. Chosen at start; the same for all slabs.
extern std::uintptr_t link_key;

inline void* encoded(void* link) { return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(link) ^ link_key); }

/// Allocation of a small block when the current slab has no freed block and its bump pointer has reached the end. Null
/// when memory is exhausted.
void* allocate_slow(ThreadHeap* heap, unsigned size_class);

/// The fast path: null sends the caller to allocate_slow.
[[gnu::always_inline]] inline void* allocate_small(ThreadHeap* heap, unsigned size_class) {
  Slab* const slab = heap->current[size_class];
  if (void* const block = slab->free; block != nullptr) [[likely]] {
    slab->free = encoded(*static_cast<void**>(block));
    ++slab->used;
    return block;
  }
  if (char* const block = slab->bump; block != slab->limit) {
    slab->bump = block + slab->block_bytes;
    ++slab->used;
    return block;
  }
  return nullptr;
}

/// What free() does when a slab's `used` fell to `notify`. The block is in the slab's list already.
void free_slow(ThreadHeap* heap, Slab* slab);

/// Free of a small block by a thread that does not own its slab. Lock-free.
void free_remote(void* block, std::uint32_t granule);

/// Adopts at most `most` announced slabs. Returns how many it adopted.
std::uint32_t adopt_pending(ThreadHeap* heap, std::uint32_t most);

/// Gives every slab back, whatever lives in them. Nobody may use or free into the heap meanwhile.
void retire_all(ThreadHeap* heap);

/// Bytes of live blocks in the heap's slabs; racy while its thread runs. O(slabs).
std::uint64_t live_bytes(const ThreadHeap* heap);

/// Calls `visit(const Slab*)` for every slab of the heap. O(slabs).
template <class Visit>
void for_each_slab(const ThreadHeap* heap, Visit&& visit) {
  for (unsigned size_class = 0; size_class < class_count; ++size_class) {
    if (const Slab* const current = heap->current[size_class]; current != &empty_slab) {
      visit(current);
    }
    for (std::uint32_t index = heap->listed[size_class]; index != 0; index = region.slabs[index].next) {
      visit(&region.slabs[index]);
    }
  }
  for (std::uint32_t index = heap->detached; index != 0; index = region.slabs[index].next) {
    visit(&region.slabs[index]);
  }
}

/// Walks one heap that nobody uses at this moment. Null, or what is broken. O(its blocks).
const char* check(const ThreadHeap* heap);

}  // namespace blockyard::heap
