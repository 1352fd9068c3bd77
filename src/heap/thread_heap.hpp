// The part of the heap that one thread owns: a current slab for every size class, and the slabs that wait behind it.
//
// Bound: allocate and free of a small block are O(1), without a lock and without an atomic read-modify-write on the
// owner's thread; at most two lists of remote frees are adopted a slow path. A fresh slab comes from the ready stack
// (lock-free), and only when that is empty from the page heap (one lock, O(1)). Overhead: 84 bytes for every 16 KiB of
// slabs; for every size class in use at most one partly used slab, one empty one, and those of 12 blocks at hand.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "heap/atomic.hpp"
#include "heap/hardening.hpp"
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

inline constexpr std::uint32_t no_heap = 0xFFFF'FFFFu;  ///< an index that no Owner holds

/// What a thread needs to allocate from one class, in the first line of two while at most four blocks are at hand: a
/// rare class then costs one cold line, where a chain from the heap over its slab to the block's own link cost three.
///
/// The blocks freed last are kept at hand, addresses only, so that most allocations and frees touch neither a slab's
/// state nor the block, whose line may be cold: magazines (Bonwick and Adams, "Magazines and Vmem", 2001), one a class
/// and thread. What does not fit goes to its slab. To their slabs the blocks at hand, and those not yet cut at `bump`,
/// are in use.
struct alignas(64) Bin {
  std::uint32_t count = 0;     ///< blocks at hand
  std::uint32_t capacity = 0;  ///< at most so many
  char* bump = nullptr;        ///< the next block never handed out of the current slab
  std::uint32_t left = 0;      ///< how many of those there are
  std::uint32_t block_bytes = 0;
  Slab* current = nullptr;                    ///< never null: the empty slab where there is none
  std::array<void*, most_at_hand> at_hand{};  ///< the newest last

  /// The newest of `its_count` blocks at hand, without a branch where there is none: what stands before the array is
  /// then read, the address of a slab's state, which is no block's.
  const void* newest(std::uint32_t its_count) const {
    const void* found;
    const auto* const bytes = reinterpret_cast<const unsigned char*>(this);
    std::memcpy(&found, bytes + offsetof(Bin, current) + its_count * sizeof found, sizeof found);
    return found;
  }
};
static_assert(sizeof(Bin) == 128 && offsetof(Bin, at_hand) == 32 && offsetof(Bin, current) == 24);

struct ThreadHeap {
  constexpr ThreadHeap(Slab* nothing, std::uint32_t its_index) : index(its_index) {
    for (unsigned size_class = 0; size_class < class_count; ++size_class) {
      bins[size_class].capacity = at_hand_capacity(size_class);
      bins[size_class].block_bytes = class_bytes(size_class);
      bins[size_class].current = nothing;
    }
  }

  std::array<Bin, class_count> bins{};
  struct Waiting {
    std::uint32_t listed = 0;    ///< slabs with room: the first (granule index, 0 is none)
    std::uint32_t granules = 0;  ///< of all slabs of the class
  };
  std::array<Waiting, class_count> waiting{};
  alignas(64) Atomic<std::uint32_t> pending{0};  ///< slabs with remote frees, pushed by other threads
  Atomic<std::uint32_t> parked_next{0};          ///< link in the stack of parked heaps
  /// In the heap table, and in Owner; no_heap: the empty heap. Every free reads it: not from the line that others
  /// write.
  alignas(64) std::uint32_t index = 0;
  std::uint32_t taken = 0;           ///< announced slabs taken from `pending`, adopted one at a time
  std::uint32_t detached = 0;        ///< slabs without room, all classes
  std::uint32_t blocks = 0;          ///< own heaps: blocks of whole pages, under the page heap's lock
  bool own = false;                  ///< made by by_heap_create, no thread's
  bool blocks_at_hand = false;       ///< parked with blocks at hand, which the janitor puts back into their slabs
  std::uint16_t parked_at = 0;       ///< the janitor's tick
  std::uint32_t slabs = 0;           ///< slabs owned
  std::uint64_t remote_adopted = 0;  ///< blocks that other threads freed and this heap took back
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

inline void* encoded(void* link) {
  return encode_links ? reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(link) ^ link_key) : link;
}

/// Allocation of a small block when none is at hand and the current slab's bump pointer has reached its end. Null when
/// memory is exhausted.
void* allocate_slow(ThreadHeap* heap, unsigned size_class);

/// The fast path: null sends the caller to allocate_slow.
[[gnu::always_inline]] inline void* allocate_small(ThreadHeap* heap, unsigned size_class) {
  Bin& bin = heap->bins[size_class];
  if (const std::uint32_t count = bin.count; count != 0) [[likely]] {
    bin.count = count - 1;
    return bin.at_hand[count - 1];
  }
  if (const std::uint32_t left = bin.left; left != 0) {
    char* const block = bin.bump;
    bin.left = left - 1;
    bin.bump = block + bin.block_bytes;
    return block;
  }
  return nullptr;
}

/// What free() does when a slab's `used` fell to `notify`. The block is in the slab's list already.
void free_slow(ThreadHeap* heap, Slab* slab);

/// Puts a block back into its slab, the owner's thread only.
[[gnu::always_inline]] inline void free_to_slab(ThreadHeap* heap, void* block, Slab* slab) {
  if (check_last_freed && slab->free == block) [[unlikely]] {
    report_freed_twice(block);
  }
  *static_cast<void**>(block) = encoded(slab->free);
  slab->free = block;
  if (--slab->used == slab->notify) [[unlikely]] {
    free_slow(heap, slab);
  }
}

/// Puts all blocks at hand back into their slabs: at most 56 times 12.
void return_blocks_at_hand(ThreadHeap* heap);

/// Keeps a freed block of the bin's class at hand; false when there is no room.
[[gnu::always_inline]] inline bool keep_at_hand(Bin& bin, void* block) {
  const std::uint32_t count = bin.count;
  if (count >= bin.capacity) [[unlikely]] {
    return false;
  }
  // The block freed last; where none is at hand this reads the pointer to the slab, which no block equals.
  if (check_last_freed && bin.newest(count) == block) [[unlikely]] {
    report_freed_twice(block);
  }
  bin.at_hand[count] = block;
  bin.count = count + 1;
  return true;
}

/// Free of a small block of class `owner.size_class()` by the thread that owns its slab.
[[gnu::always_inline]] inline void free_small(ThreadHeap* heap, void* block, std::size_t granule, Owner owner) {
  if (!keep_at_hand(heap->bins[owner.size_class()], block)) {
    free_to_slab(heap, block, &region.slabs[granule - owner.back()]);
  }
}

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

/// Walks one heap that nobody uses at this moment. Null, or what is broken. O(its blocks).
const char* check(const ThreadHeap* heap);

}  // namespace blockyard::heap
