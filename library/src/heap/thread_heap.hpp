// The part of the heap that one thread owns: a current slab for every size class, and the slabs that wait behind it.
//
// Bound: allocate and free of a small block are O(1), without a lock and without an atomic read-modify-write on the
// owner's thread; at most two lists of remote frees are adopted a slow path. A fresh slab comes from the ready stack
// (lock-free), and only when that is empty from the page heap (one lock, O(1)). Overhead: 84 bytes for every 16 KiB of
// slabs; for every size class in use at most one partly used slab, one empty one, and those of 12 to 60 blocks at hand;
// and those of 8 blocks on their way back.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "heap/atomic.hpp"
#include "heap/hardening.hpp"
#include "heap/prefetch.hpp"
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

/// What a thread needs to allocate from one class, in the first line of two while at most five blocks are at hand: a
/// rare class then costs one cold line, where a chain from the heap over its slab to the block's own link cost three.
///
/// The blocks freed last are kept at hand, addresses only, so that most allocations and frees touch neither a slab's
/// state nor the block, whose line may be cold: magazines (Bonwick and Adams, "Magazines and Vmem", 2001), one a class
/// and thread. What does not fit goes to other threads by way of the depot, or back to its slab by way of
/// ThreadHeap::returning. To their slabs the blocks at hand, and those not yet cut at `bump`, are in use.
///
/// The newest stands not here but in ThreadHeap::rows, with the place of the next: a free reads nothing of the bin, it
/// only writes there, and nobody waits for a write; and an allocation knows its block before it has read anything here.
struct alignas(64) Bin {
  char* bump = nullptr;    ///< the next block never handed out of the current slab
  std::uint32_t left = 0;  ///< how many of those there are
  std::uint32_t block_bytes = 0;
  Slab* current = nullptr;  ///< never null: the empty slab where there is none
  /// All but the newest, from 1 on, the oldest first; [0] is null. Where more are kept they stand in ThreadHeap::wide.
  std::array<void*, most_at_hand_at_first + 1> at_hand{};
};
static_assert(sizeof(Bin) == 128);

/// A freed block on its way back into its slab; that is null where the block is another thread's, or there is none.
/// Copied as a whole: two stores of eight bytes are not forwarded to a load of sixteen.
struct alignas(16) Returning {
  void* block = nullptr;
  Slab* slab = nullptr;
};

/// How many of those a thread holds: see ThreadHeap::returning.
inline constexpr std::uint32_t most_returning = 8;

/// Blocks of whole pages that a thread keeps at hand when they are freed: one of each length in pages from
/// `shortest_run` on.
inline constexpr std::uint32_t shortest_run = small_limit / page_bytes + 1;
inline constexpr std::uint32_t longest_run = 20;

/// The newest block at hand of a class, and the place of the next, as byte offset from the heap on: malloc and free
/// then compute no address from a class and a count. Words, since a byte that was just written is not forwarded as fast.
///
/// The block itself stands here since each load that an allocation needs before it knows its block is one more store of
/// the free before to wait for: a tight pair took 25 cycles with the place alone.
struct Row {
  static constexpr std::uint32_t step = sizeof(void*);
  void* newest = nullptr;  ///< null: none
  /// Place of the one before it: of at_hand[0], which is null, where there is none; one below where `newest` is null.
  std::uint32_t second = 0;
  std::uint32_t last = 0;  ///< where `second` is when no more may be kept: see shed_blocks
};
static_assert(sizeof(Row) == 16);

struct alignas(64) ThreadHeap {
  constexpr ThreadHeap(Slab* nothing, std::uint32_t its_index) : index(its_index) {
    for (unsigned size_class = 0; size_class < class_count; ++size_class) {
      keep_few(size_class);
      allow_at_hand(size_class, its_index == no_heap ? 0 : at_hand_at_first(size_class));
      bins[size_class].block_bytes = class_bytes(size_class);
      bins[size_class].current = nothing;
    }
  }

  /// The row of a class by its row_place.
  Row& row_at(std::size_t place) { return *reinterpret_cast<Row*>(reinterpret_cast<char*>(this) + place * 8); }
  /// Where the blocks at hand of a class stand, all but the newest: the place of its `at_hand[0]`. More than fit into
  /// its bin stand apart, so that the bins of a thread that shares no blocks lie in one page.
  constexpr std::uint32_t first_place(unsigned size_class) const {
    return is_wide(size_class) ? wide_place(size_class) : narrow_place(size_class);
  }
  void** first_at_hand(unsigned size_class) { return &at(first_place(size_class)); }
  const void* const* first_at_hand(unsigned size_class) const {
    return reinterpret_cast<const void* const*>(reinterpret_cast<const char*>(this) + first_place(size_class));
  }
  /// Blocks at hand of a class, and how many there may be.
  constexpr std::uint32_t at_hand(unsigned size_class) const {
    return (rows[size_class].second + Row::step - first_place(size_class)) / Row::step;
  }
  constexpr std::uint32_t most_at_hand(unsigned size_class) const {
    return (rows[size_class].last + Row::step - first_place(size_class)) / Row::step;
  }
  constexpr void set_at_hand(unsigned size_class, void* newest, std::uint32_t count) {
    rows[size_class].newest = newest;
    rows[size_class].second = place(size_class, count);
  }
  constexpr void allow_at_hand(unsigned size_class, std::uint32_t count) {
    rows[size_class].last = place(size_class, count);
  }
  /// From now on as many may be kept as ever; those at hand stay.
  void keep_many(unsigned size_class);
  /// From now on no more than at first, and those in the bin; there is none at hand.
  constexpr void keep_few(unsigned size_class) {
    rows[size_class] = {nullptr, narrow_place(size_class) - Row::step, narrow_place(size_class) - Row::step};
    allow_at_hand(size_class, at_hand_at_first(size_class));
  }
  /// Takes the newest block at hand; null if there is none.
  void* take_at_hand(std::size_t row) {
    void* const block = row_at(row).newest;
    if (block != nullptr) [[likely]] {
      const std::uint32_t second = row_at(apart(row)).second;
      row_at(apart(row)).newest = at(second);
      row_at(apart(row)).second = second - Row::step;
    }
    return block;
  }
  /// Keeps one more at hand; there must be room.
  void keep_at_hand(std::size_t row, void* block) {
    const std::size_t second = row_at(apart(row)).second;
    at(second + Row::step) = row_at(row).newest;
    row_at(apart(row)).second = static_cast<std::uint32_t>(second + Row::step);
    row_at(row).newest = block;
  }
  /// The same place of a row, of which the compiler does not know that it is: each access then finds its address as a
  /// sum in the instruction itself, where one address computed for all would be an instruction, and a cycle that the
  /// next allocation waits for, more. A larson-like loop lost 4 to 5 % to it.
  static std::size_t apart(std::size_t row) {
    __asm__("" : "+r"(row));
    return row;
  }
  /// Where the second newest stands while so many are at hand.
  constexpr std::uint32_t place(unsigned size_class, std::uint32_t count) const {
    return first_place(size_class) + count * Row::step - Row::step;
  }
  static constexpr std::uint32_t narrow_place(unsigned size_class);
  static constexpr std::uint32_t wide_place(unsigned size_class);
  constexpr bool is_wide(unsigned size_class) const;
  void*& at(std::size_t place) { return *reinterpret_cast<void**>(reinterpret_cast<char*>(this) + place); }

  std::uint32_t index = 0;              ///< in the heap table, and in Owner; no_heap: the empty heap
  std::uint64_t remote_adopted = 0;     ///< blocks that other threads freed and this heap took back
  std::array<Row, class_count> rows{};  ///< every malloc and free reads one; see row_place

  std::array<Bin, class_count> bins{};
  /// Freed blocks for which there was no room at hand, of any class and of other threads' slabs too, the oldest first.
  /// The next to come moves all on, and the oldest goes back into its slab: the lines that this touches were asked for
  /// when it came, so that no free waits for them. A half to four fifths of a game's frees go this way, since what it
  /// frees it frees many at once: all moved on, not a ring, since a place to be looked up first is one load more to wait
  /// for. To their slabs these blocks are in use.
  std::array<Returning, most_returning> returning{};
  std::array<void*, longest_run - shortest_run + 1> runs{};  ///< null: none; to the page heap they are in use
  struct Waiting {
    std::uint32_t listed = 0;    ///< slabs with room: the first (granule index, 0 is none)
    std::uint32_t granules = 0;  ///< of all slabs of the class
  };
  std::array<Waiting, class_count> waiting{};
  alignas(64) Atomic<std::uint32_t> pending{0};  ///< slabs with remote frees, pushed by other threads
  Atomic<std::uint32_t> parked_next{0};          ///< link in the stack of parked heaps
  alignas(64) std::uint32_t taken = 0;           ///< announced slabs taken from `pending`, adopted one at a time
  std::uint32_t detached = 0;                    ///< slabs without room, all classes
  std::uint32_t blocks = 0;                      ///< own heaps: blocks of whole pages, under the page heap's lock
  bool own = false;                              ///< made by by_arena_create, no thread's
  bool unsettled = false;       ///< parked with blocks at hand or empty slabs, which the janitor gives back
  std::uint16_t parked_at = 0;  ///< the janitor's tick
  std::uint32_t slabs = 0;      ///< slabs owned
  Atomic<bool> made{false};     ///< constructed: the table counts a heap before it is
  /// The blocks at hand of each class whose blocks go from thread to thread, as in Bin::at_hand. Last: behind all bins.
  using Wide = std::array<void*, blockyard::heap::most_at_hand>;
  alignas(64) std::array<Wide, depot_classes> wide{};
};
static_assert(offsetof(ThreadHeap, rows) == row_place(0) * std::size_t{8});

constexpr std::uint32_t ThreadHeap::narrow_place(unsigned size_class) {
  return static_cast<std::uint32_t>(offsetof(ThreadHeap, bins) + size_class * sizeof(Bin) + offsetof(Bin, at_hand));
}
constexpr std::uint32_t ThreadHeap::wide_place(unsigned size_class) {
  return static_cast<std::uint32_t>(offsetof(ThreadHeap, wide) + size_class * sizeof(Wide));
}
constexpr bool ThreadHeap::is_wide(unsigned size_class) const {
  return rows[size_class].last >= offsetof(ThreadHeap, wide) - Row::step;
}

/// A slab with no room at all, and a heap that has only such slabs and owns nothing: what a thread has before its first
/// allocation, so that the fast path needs no branch for it.
extern Slab empty_slab;
extern ThreadHeap empty_heap;

/// The calling thread's heap; the empty one before the first allocation and after the thread's end has begun.
extern constinit thread_local ThreadHeap* thread_heap __attribute__((tls_model("initial-exec")));

/// Blocks that the calling thread freed before it had a heap, to be counted up to frees_before_heap, from where on it
/// takes one too; never_again once it has left its heap: what is freed at its very end must not have it take another.
extern constinit thread_local std::uint8_t frees_without_heap __attribute__((tls_model("initial-exec")));
inline constexpr std::uint8_t frees_before_heap = 32;
inline constexpr std::uint8_t never_again = 255;

/// Encodes the links of free lists: a block that is written after its free no longer leads the allocator where an
/// attacker wants. Chosen at start; the same for all slabs.
extern std::uintptr_t link_key;

inline void* encoded(void* link) {
  return encode_links ? reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(link) ^ link_key) : link;
}

/// Allocation of a small block when none is at hand and the current slab's bump pointer has reached its end. Null when
/// memory is exhausted.
void* allocate_slow(ThreadHeap* heap, unsigned size_class);

/// The fast path, for the class of a row_place: null sends the caller to allocate_slow.
[[gnu::always_inline]] inline void* allocate_small(ThreadHeap* heap, std::size_t place) {
  if (void* const block = heap->take_at_hand(place); block != nullptr) [[likely]] {
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

/// What free() does when a slab's `used` fell to `notify`. The block is in the slab's list already.
[[gnu::noinline]] void free_slow(ThreadHeap* heap, Slab* slab);

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

/// Puts all blocks at hand, and those on their way, back into their slabs, at most 32 times 60, and 8, and gives the
/// process every slab that is then empty. For a heap that no thread has.
void settle(ThreadHeap* heap);

/// Keeps `less` fewer blocks of a class at hand, until an allocation finds neither any at hand nor the bump pointer:
/// called where frees come on frees, so that they emptied a slab. Who frees a level in no order would otherwise be left
/// with the last ones of each class, each in a slab that holds nothing else.
[[gnu::noinline]] void shed_blocks(ThreadHeap* heap, unsigned size_class, std::uint32_t less);

/// Puts another thread's block back into its slab; null: does nothing.
[[gnu::noinline]] void return_to_other(ThreadHeap* heap, void* block);

/// The block takes its place among those on their way; the oldest of them goes back into its slab.
[[gnu::always_inline]] inline void send_back(ThreadHeap* heap, void* block, Slab* slab) {
  auto& returning = heap->returning;
  static_assert(most_returning == 8);  // in a loop it would be a call of memmove
  const Returning oldest = returning[0];
  returning[0] = returning[1];
  returning[1] = returning[2];
  returning[2] = returning[3];
  returning[3] = returning[4];
  returning[4] = returning[5];
  returning[5] = returning[6];
  returning[6] = returning[7];
  using Whole = std::uintptr_t __attribute__((vector_size(sizeof(Returning))));
  const Whole newest{reinterpret_cast<std::uintptr_t>(block), reinterpret_cast<std::uintptr_t>(slab)};
  returning[most_returning - 1] = std::bit_cast<Returning>(newest);
  if (oldest.slab != nullptr) [[likely]] {
    free_to_slab(heap, oldest.block, oldest.slab);
  } else {
    return_to_other(heap, oldest.block);
  }
}

/// A freed block of another thread for which there is no room at hand: it is handed over by way of the depot where
/// blocks of its class are wanted, else it is sent on its way back into its slab. O(1). `heap` may be the empty one,
/// which has no room ever.
[[gnu::noinline]] void return_block_of_other(ThreadHeap* heap, void* block, unsigned size_class);

/// A freed block of any thread's heap for which there is no room at hand. O(1).
[[gnu::noinline]] inline void return_block(ThreadHeap* heap, void* block) {
  if (check_last_freed && heap->returning[most_returning - 1].block == block) [[unlikely]] {
    report_freed_twice(block);
  }
  const std::size_t granule = region.granule_of(block);
  const Owner owner = region.owner_of(granule);
  if (owner.heap() != heap->index) [[unlikely]] {
    return_block_of_other(heap, block, owner.size_class());
    return;
  }
  Slab* const slab = &region.slabs[granule - owner.back()];
  prefetch_to_write(slab);
  send_back(heap, block, slab);
}

/// Free of a small block out of a slab of any thread's heap: `heap` keeps it, in `row`, that of its class.
[[gnu::always_inline]] inline void free_small(ThreadHeap* heap, void* block, std::size_t row) {
  void* const newest = heap->row_at(row).newest;
  if (check_last_freed && newest == block) [[unlikely]] {
    report_freed_twice(block);
  }
  const std::size_t second = heap->row_at(ThreadHeap::apart(row)).second;
  if (second >= heap->row_at(ThreadHeap::apart(row)).last) {
    return_block(heap, block);
    return;
  }
  heap->at(second + Row::step) = newest;
  heap->row_at(ThreadHeap::apart(row)).second = static_cast<std::uint32_t>(second + Row::step);
  heap->row_at(ThreadHeap::apart(row)).newest = block;
}

/// Free of a small block by a thread that does not own its slab. Lock-free. `heap`, that thread's or null, keeps fewer
/// blocks at hand where this is the slab's first free since its owner looked.
void free_remote(ThreadHeap* heap, void* block, std::uint32_t granule);

/// Adopts at most `most` announced slabs. Returns how many it adopted.
std::uint32_t adopt_pending(ThreadHeap* heap, std::uint32_t most);

/// Gives every slab back, whatever lives in them. Nobody may use or free into the heap meanwhile.
void retire_all(ThreadHeap* heap);

/// Bytes of live blocks in the heap's slabs; racy while its thread runs. O(slabs).
std::uint64_t live_bytes(const ThreadHeap* heap);

/// Place of a slab's record in the region's table: its first granule.
inline std::uint32_t index_of(const Slab* slab) { return static_cast<std::uint32_t>(slab - region.slabs); }

/// Whether the slab has a block to give, known to its owner.
inline bool has_room(const Slab* slab) { return slab->free != nullptr || slab->bump != slab->limit; }

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

/// A block that waits in the depot: null, or what is broken.
const char* check_handed_over(void* block, unsigned size_class);

/// Walks one heap that nobody uses at this moment. Null, or what is broken. O(its blocks).
const char* check(const ThreadHeap* heap);

}  // namespace blockyard::heap
