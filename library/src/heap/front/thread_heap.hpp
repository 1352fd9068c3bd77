// The record of the part of the heap that one thread owns: its cache of freed blocks, a current slab for every size
// class, and the slabs that wait behind it.
//
// Overhead: 85 bytes for every 16 KiB of slabs; for every size class in use at most one partly used slab, one empty
// one, and those of the cached blocks (12 to 60; up to 64 KiB where a thread frees and allocates them in turn); and
// those of the 8 blocks of the deferred-free buffer.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "heap/front/hardening.hpp"
#include "heap/size_class.hpp"
#include "heap/slab_tables.hpp"

namespace blockyard::heap {

/// Cached blocks of a class as long as the thread has handed none of it over to another. More would lie on more cache
/// lines, and only between threads does it save more than that costs.
inline constexpr std::uint32_t most_in_bin = 12;
constexpr std::uint32_t first_cache_limit(unsigned index) { return std::min(cache_capacity(index), most_in_bin); }

/// Cached blocks of a class of which the thread frees and allocates more in turn: it needs no slab for them then. At
/// most 64 KiB.
inline constexpr std::uint32_t most_in_turn = 1024;
constexpr std::uint32_t capacity_in_turn(unsigned index) {
  constexpr std::uint32_t bytes = 64u << 10;
  return std::max(cache_capacity(index), std::min(bytes / class_bytes(index), most_in_turn));
}
/// So many frees in a row that find the cache full come of such turns. Where mallocs and frees come in no order, one in
/// a hundred of such rows is as long.
inline constexpr std::uint32_t least_turn = 64;

/// Where the extended cache of each class begins among those of a heap, in blocks; of depot_classes: where they end.
inline constexpr std::array<std::uint16_t, depot_classes + 1> extended_begins = [] {
  std::array<std::uint16_t, depot_classes + 1> begins{};
  for (unsigned index = 0; index < depot_classes; ++index) {
    begins[index + 1] = static_cast<std::uint16_t>(begins[index] + capacity_in_turn(index));
  }
  return begins;
}();

inline constexpr std::uint32_t no_heap = 0xFFFF'FFFFu;  ///< an index that no Owner holds

/// What a thread needs to allocate from one class. Its first line of two is enough while at most five blocks are
/// cached: a rare class then costs one cold line, where a chain from the heap over its slab to the block's own link
/// cost three.
///
/// The blocks freed last are cached, addresses only, so that most allocations and frees touch neither a slab's state
/// nor the block, whose line may be cold: a magazine for each class and thread (Bonwick and Adams, "Magazines and
/// Vmem", 2001). What does not fit goes to other threads by way of the depot, or back to its slab by way of
/// ThreadHeap::deferred. To their slabs the cached blocks, and those not yet cut at `bump`, are in use.
///
/// The newest stands not here but in ThreadHeap::entries, with the position of the next: a free reads nothing of the
/// bin, it only writes there, and nobody waits for a write; and an allocation knows its block before it has read
/// anything here.
struct alignas(64) Bin {
  char* bump = nullptr;    ///< the next block never handed out of the current slab
  std::uint32_t left = 0;  ///< how many of those there are
  std::uint32_t block_bytes = 0;
  Slab* current = nullptr;  ///< never null: the empty slab where there is none
  /// All but the newest, from 1 on, the oldest first; [0] is null. Of an extended cache they stand behind the heap.
  std::array<void*, most_in_bin + 1> cached{};
};
static_assert(sizeof(Bin) == 128);

/// A freed block on its way back into its slab; that is null where the block is another thread's, or there is none.
/// Copied as a whole: two stores of eight bytes are not forwarded to a load of sixteen.
struct alignas(16) DeferredFree {
  void* block = nullptr;
  Slab* slab = nullptr;
};
inline constexpr std::uint32_t most_deferred = 8;

/// Freed blocks of whole pages that a thread caches: one of each length in pages from `shortest_run` on.
inline constexpr std::uint32_t shortest_run = small_limit / page_bytes + 1;
inline constexpr std::uint32_t longest_run = 20;

/// The newest cached block of a class, and the position of the next in words from the heap on: malloc and free then
/// compute no address from a class and a count. The block itself stands here, since each load that an allocation needs
/// before it knows its block is one more store of the free before to wait for.
struct CacheEntry {
  void* newest = nullptr;  ///< null: none
  /// Position of the one before it: of cached[0], which is null, where there is none; one below where `newest` is null.
  std::uint16_t second = 0;
  std::uint16_t last = 0;  ///< where `second` is when the cache is full
  /// Frees of the heap's own blocks that found the cache full, since an allocation last found it empty. Not 0 either
  /// where the limit was lowered: what an allocation past the cache asks, before it looks at the limit.
  std::uint16_t past = 0;
  /// Bits that no address of a block of the class has, since every block's bytes are a multiple of the next power of
  /// two.
  std::uint16_t inside = 0;
};
static_assert(sizeof(CacheEntry) == 16);

struct alignas(64) ThreadHeap {
  constexpr ThreadHeap(Slab* nothing, std::uint32_t number) : index(number) {
    for (unsigned size_class = 0; size_class < class_count; ++size_class) {
      entries[size_class].inside = static_cast<std::uint16_t>((class_bytes(size_class) & -class_bytes(size_class)) - 1);
      reset_cache(size_class);
      set_cache_limit(size_class, number == no_heap ? 0 : first_cache_limit(size_class));
      bins[size_class].block_bytes = class_bytes(size_class);
      bins[size_class].current = nothing;
    }
    bins[empty_class].current = nothing;
  }

  /// Calls visit(block) for each cached block of a class, the oldest first, until one returns true: that block; null:
  /// none did.
  template <class Visit>
  const void* find_cached(unsigned size_class, Visit&& visit) const {
    const std::uint32_t count = cached(size_class);
    for (std::uint32_t each = 1; each <= count; ++each) {
      const void* const block = each < count ? first_cached(size_class)[each] : newest(size_class);
      if (visit(block)) {
        return block;
      }
    }
    return nullptr;
  }
  const void* newest(unsigned size_class) const { return entries[size_class].newest; }
  const void* newest(CacheSlot slot) { return entry(slot).newest; }
  /// Whether what is cached fits its room, and is empty as a whole or not at all.
  bool cache_is_sound(unsigned size_class) const {
    return std::max(cached(size_class), cache_limit(size_class)) <= capacity_in_turn(size_class) &&
           first_cached(size_class)[0] == nullptr && (newest(size_class) == nullptr) == (cached(size_class) == 0);
  }
  void** first_cached(unsigned size_class) { return &at(first_position(size_class)); }
  const void* const* first_cached(unsigned size_class) const {
    return reinterpret_cast<const void* const*>(this) + first_position(size_class);
  }
  /// Cached blocks of a class, and how many there may be.
  constexpr std::uint32_t cached(unsigned size_class) const {
    return entries[size_class].second + 1u - first_position(size_class);
  }
  constexpr std::uint32_t cache_limit(unsigned size_class) const {
    return entries[size_class].last + 1u - first_position(size_class);
  }
  constexpr void set_cached(unsigned size_class, void* newest, std::uint32_t count) {
    entries[size_class].newest = newest;
    entries[size_class].second = static_cast<std::uint16_t>(position(size_class, count));
  }
  constexpr void set_cache_limit(unsigned size_class, std::uint32_t count) {
    entries[size_class].last = static_cast<std::uint16_t>(position(size_class, count));
  }
  /// Fewer may be cached from now on, until an allocation finds none. Those that are stay.
  constexpr void lower_cache_limit(unsigned size_class, std::uint32_t count) {
    set_cache_limit(size_class, count);
    entries[size_class].past |= 1;
  }
  /// From now on at least so many may be cached, capacity_in_turn at most; those that are stay. O(1): none is, or those
  /// in the bin.
  void extend_cache(unsigned size_class, std::uint32_t limit);
  /// The same for a class whose blocks threads hand to one another: no more than cache_capacity from now on.
  void share_cache(unsigned size_class);
  /// From now on no more than at first, and those in the bin; none is cached.
  constexpr void reset_cache(unsigned size_class) {
    entries[size_class].last = static_cast<std::uint16_t>(bin_position(size_class) - 1);
    entries[size_class].past = 0;
    in_turn &= ~(std::uint32_t{1} << size_class);
    set_cached(size_class, nullptr, 0);
    set_cache_limit(size_class, first_cache_limit(size_class));
  }
  /// Takes the newest cached block; null if there is none.
  void* take_cached(CacheSlot slot) {
    void* const block = entry(slot).newest;
    if (block != nullptr) [[likely]] {
      const std::size_t second = entry_again(slot).second;
      entry_again(slot).newest = at(second);
      entry_again(slot).second = static_cast<std::uint16_t>(second - 1);
    }
    return block;
  }
  /// Caches one more; there must be room.
  void cache(CacheSlot slot, void* block) {
    const std::size_t second = entry_again(slot).second;
    at(second + 1) = entry(slot).newest;
    entry_again(slot).second = static_cast<std::uint16_t>(second + 1);
    entry(slot).newest = block;
  }
  /// What free looks at before it caches a block. One after the other, as each costs instructions.
  enum class Cached : std::uint8_t { done, perhaps_again, inside, full };
  [[gnu::always_inline]] Cached try_to_cache(CacheSlot slot, void* block) {
    void* const newest = entry(slot).newest;
    if (check_last_freed && newest == block) [[unlikely]] {
      return Cached::perhaps_again;
    }
    if (check_begin && (reinterpret_cast<std::uintptr_t>(block) & entry_again(slot).inside) != 0) [[unlikely]] {
      return Cached::inside;
    }
    const std::size_t second = entry_again(slot).second;
    // Where no second newest is cached, what stands there may be anything.
    if (check_last_freed && at(second) == block) [[unlikely]] {
      return Cached::perhaps_again;
    }
    if (second >= entry_again(slot).last) {
      return Cached::full;
    }
    at(second + 1) = newest;
    entry_again(slot).second = static_cast<std::uint16_t>(second + 1);
    entry_again(slot).newest = block;
    return Cached::done;
  }
  bool has_room_in_cache(unsigned size_class) const { return entries[size_class].second < entries[size_class].last; }
  /// More cached than the limit allows, since that was lowered.
  bool is_beyond_limit(unsigned size_class) const {
    return entries[size_class].newest != nullptr && entries[size_class].second > entries[size_class].last;
  }
  /// Frees past the cache since an allocation last found it empty; see CacheEntry.
  std::uint16_t& past(unsigned size_class) { return entries[size_class].past; }
  std::uint16_t past(CacheSlot slot) { return entry(slot).past; }

  /// Caches a magazine's blocks but the first, for a class of which none is cached. Handed out in the order of their
  /// frees: neighbours stay neighbours, and a processor fetches the next ones ahead.
  void cache_magazine(unsigned size_class, void* const* magazine, std::uint32_t count) {
    share_cache(size_class);
    for (std::uint32_t each = 2; each < count; ++each) {
      first_cached(size_class)[count - each] = magazine[each];
    }
    set_cached(size_class, magazine[1], count - 1);
  }
  /// The oldest `count` cached blocks of a class whose cache is full; of one that holds more than threads hand to one
  /// another, the newest but one, so that no more than those are moved.
  void** oldest_cached(unsigned size_class, std::uint32_t count) {
    const std::uint32_t held = cached(size_class);
    void** const first = first_cached(size_class);
    return held > cache_capacity(size_class) ? first + held - count : first + 1;
  }
  /// Forgets them.
  void drop_oldest(unsigned size_class, std::uint32_t count);

  // The encoding: nobody else goes by it.
  CacheEntry& entry(CacheSlot slot) {
    return *reinterpret_cast<CacheEntry*>(reinterpret_cast<char*>(this) + slot.word_ * 8);
  }
  /// The same, of which the compiler does not know that it is: each access then finds its address as a sum in the
  /// instruction itself. One address computed for all would be an instruction more, which the next allocation waits
  /// for.
  CacheEntry& entry_again(CacheSlot slot) {
    __asm__("" : "+r"(slot.word_));
    return entry(slot);
  }
  /// Where the cached blocks of a class stand, all but the newest: the position of its `cached[0]`. An extended cache
  /// stands apart, so that the bins of a thread that shares no blocks lie in one page.
  constexpr std::uint32_t first_position(unsigned size_class) const {
    return is_extended(size_class) ? extended_position(size_class) : bin_position(size_class);
  }
  /// Where the second newest stands while so many are cached.
  constexpr std::uint32_t position(unsigned size_class, std::uint32_t count) const {
    return first_position(size_class) + count - 1;
  }
  static constexpr std::uint32_t bin_position(unsigned size_class);
  static constexpr std::uint32_t extended_position(unsigned size_class);
  constexpr bool is_extended(unsigned size_class) const;
  void*& at(std::size_t position) { return reinterpret_cast<void**>(this)[position]; }

  std::uint32_t index = 0;                            ///< in the heap table, and in Owner; no_heap: the empty heap
  std::uint32_t in_turn = 0;                          ///< a bit for each class whose cache frees in a row extended
  std::uint64_t remote_adopted = 0;                   ///< blocks that other threads freed and this heap took back
  std::array<CacheEntry, class_count + 1> entries{};  ///< every malloc and free reads one; see CacheSlot

  std::array<Bin, class_count + 1> bins{};
  /// The deferred-free buffer: freed blocks for which the cache had no room, of any class and of other threads' slabs
  /// too, the oldest first. The next to come moves all on, and the oldest goes back into its slab: the lines that this
  /// touches were prefetched when it came, so that no free waits for them. Not a ring: its index would be one load more
  /// to wait for. To their slabs these blocks are in use.
  std::array<DeferredFree, most_deferred> deferred{};
  std::array<void*, longest_run - shortest_run + 1> runs{};  ///< null: none; to the page heap they are in use
  struct Waiting {
    std::uint32_t listed = 0;  ///< slabs with room: the first (slice index, 0 is none)
    std::uint32_t slices = 0;  ///< of all slabs of the class
  };
  std::array<Waiting, class_count> waiting{};
  alignas(64) Atomic<std::uint32_t> pending{0};  ///< slabs with remote frees, pushed by other threads
  Atomic<std::uint32_t> parked_next{0};          ///< link in the stack of parked heaps
  alignas(64) std::uint32_t taken = 0;           ///< announced slabs taken from `pending`, adopted one at a time
  std::uint32_t detached = 0;                    ///< slabs without room, all classes
  std::uint32_t blocks = 0;                      ///< arenas: blocks of whole pages, under the page heap's lock
  bool is_arena = false;                         ///< made by by_arena_create, no thread's
  bool needs_flush = false;     ///< parked with cached blocks or empty slabs, which the background thread gives back
  std::uint16_t parked_at = 0;  ///< the background thread's tick
  std::uint32_t slabs = 0;      ///< slabs owned
  std::uint32_t frees_while_missed = 0;  ///< of other threads' blocks, while the depot was full
  std::uint64_t slabs_begun = 0;         ///< how often one started to hand out its blocks: Slab::key
  void* quarantine = nullptr;            ///< see guard/blocks.cpp; null: none
  Atomic<bool> made{false};              ///< constructed: the table counts a heap before it is
};
static_assert(class_count <= 32);  // bits of in_turn
static_assert(offsetof(ThreadHeap, entries) == CacheSlot::of_class(0).byte() * sizeof(void*));

/// Behind each heap of the table: extended caches of the classes that the depot has too. Apart, so that the bins of a
/// thread that needs none lie in one page, and its other pages are not touched.
inline constexpr std::size_t heap_stride =
    (sizeof(ThreadHeap) + extended_begins[depot_classes] * sizeof(void*) + 511) / 512 * 512;
static_assert(heap_stride / sizeof(void*) < 1u << 16);  // CacheEntry::last

constexpr std::uint32_t ThreadHeap::bin_position(unsigned size_class) {
  return static_cast<std::uint32_t>((offsetof(ThreadHeap, bins) + size_class * sizeof(Bin) + offsetof(Bin, cached)) /
                                    sizeof(void*));
}
constexpr std::uint32_t ThreadHeap::extended_position(unsigned size_class) {
  return static_cast<std::uint32_t>(sizeof(ThreadHeap) / sizeof(void*)) + extended_begins[size_class];
}
constexpr bool ThreadHeap::is_extended(unsigned size_class) const {
  return entries[size_class].last >= sizeof(ThreadHeap) / sizeof(void*) - 1;
}

/// Copies one by one: a call of the C library's memmove is cold code where it is seldom made.
inline void copy_blocks(void* const* from, void** to, std::uint32_t count) {
  for (std::uint32_t each = 0; each < count; ++each) {
    to[each] = from[each];
    __asm__("" ::: "memory");  // else the compiler makes that call of it
  }
}

/// A slab with no room at all, and a heap that has only such slabs and owns nothing: what a thread has before its first
/// allocation, so that the fast path needs no branch for it.
extern Slab empty_slab;
extern ThreadHeap empty_heap;

/// The calling thread's heap; the empty one before the first allocation and after the thread's end has begun.
extern constinit thread_local ThreadHeap* thread_heap __attribute__((tls_model("initial-exec")));
/// Its heap where BLOCKYARD_HEAP_GUARD is on; the above is then the empty one. See guard/guard.hpp.
extern constinit thread_local ThreadHeap* heap_behind_guard __attribute__((tls_model("initial-exec")));

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

}  // namespace blockyard::heap
