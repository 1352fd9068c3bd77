// The heap's region, which all of its blocks come from, and what its side tables say of slabs: a Slab, an Owner, a
// RemoteFrees and a byte of the class map for each slice.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "heap/size_class.hpp"
#include "pages/region.hpp"

namespace blockyard::heap {

#if BLOCKYARD_CHECKED
inline constexpr std::size_t largest_region = std::size_t{32} << 30;  // its tables take twice as much again
#else
inline constexpr std::size_t largest_region = std::size_t{256} << 30;
#endif

/// Address space that the table of all heaps may take.
inline constexpr std::size_t heap_table_bytes = std::size_t{5} << 30;

/// Whose slab lies in a slice, and of which class: what every free asks that is not the plain case, for which
/// HeapRegion::cache_slot_of has a byte. Four bytes, so that one cache line answers for 256 KiB of blocks: an entry of
/// 32 bytes that also held the remote list was a cache miss for most frees of cold blocks.
class Owner {
 public:
  constexpr explicit Owner(std::uint32_t word) : word_(word) {}
  constexpr Owner(std::uint32_t heap, unsigned size_class, std::uint32_t back, bool arena)
      : word_(size_class | heap << 8 | back << 24 | (arena ? arena_bit : 0)) {}

  constexpr std::uint32_t word() const { return word_; }
  constexpr std::uint32_t heap() const { return word_ >> 8 & 0xFFFFu; }  ///< index; 0: no slab lies here
  constexpr unsigned size_class() const { return word_ & 0xFFu; }
  constexpr std::uint32_t back() const { return word_ >> 24 & 0x7Fu; }  ///< slices from the slab's first to this one
  constexpr bool is_arena() const { return (word_ & arena_bit) != 0; }  ///< the heap is an arena, no thread's

 private:
  static constexpr std::uint32_t arena_bit = std::uint32_t{1} << 31;

  std::uint32_t word_;
};

/// What other threads write of a slab, under its first slice. Apart from Slab, so that a remote free reads and writes
/// no cache line that the owner's fast path writes.
struct alignas(16) RemoteFrees {
  Atomic<std::uint64_t> remote{0};        ///< remote frees not yet adopted: see base/remote_list.hpp
  Atomic<std::uint32_t> oldest{0};        ///< end of that list
  Atomic<std::uint32_t> pending_next{0};  ///< link in the owner's stack of slabs with remote frees, or of ready slabs
};
static_assert(sizeof(RemoteFrees) == 16);

enum class SlabState : std::uint8_t {
  none = 0,
  current,   ///< its heap allocates from it
  listed,    ///< has room, waits in its heap's list
  detached,  ///< had no room when its heap left it: waits until a block comes back
};

inline constexpr std::uint32_t notify_never = 0xFFFF'FFFFu;  ///< `used` never falls to this

/// A slab's state, written by the owner's thread alone.
struct alignas(64) Slab {
  void* free = nullptr;      ///< freed blocks, last in first out, see hardening.hpp; `limit`: none
  char* bump = nullptr;      ///< `limit`, or the first block of a slab that has handed none out
  char* limit = nullptr;     ///< end of the last block
  std::uint32_t used = 0;    ///< blocks handed out, remote frees not yet adopted included
  std::uint32_t notify = 0;  ///< free() takes the slow path when `used` falls to this: 0, or capacity - 1 when detached
  std::uint32_t capacity = 0;
  std::uint32_t block_bytes = 0;
  std::uint32_t next = 0;  ///< links in the heap's list of slabs with room (index, 0 is none)
  std::uint32_t previous = 0;
  std::uint8_t size_class = 0;
  SlabState state{};
  std::uint8_t slices = 0;
  bool populated = false;     ///< each page is
  std::uint32_t inverse = 0;  ///< of block_bytes: class_inverse
  std::uintptr_t key = 0;     ///< of links in `free`; another each time the slab starts to hand out its blocks
};
static_assert(sizeof(Slab) == 64);

/// What a checked build knows of a block (guard/blocks.cpp), for each 16 bytes of the region.
#if BLOCKYARD_CHECKED
inline constexpr std::size_t record_bytes = 24;
#else
inline constexpr std::size_t record_bytes = 0;
#endif

/// Its further tables have an entry for each slice, and the last one for each place where a block may begin.
struct HeapRegion : Region {
  constexpr HeapRegion() {
    tables = {{{pages_per_slice * sizeof(PageTag)},
               {sizeof(std::uint32_t)},
               {sizeof(RemoteFrees)},
               {sizeof(Slab)},
               {sizeof(std::uint8_t)},
               {slice_bytes / block_alignment * record_bytes}}};
  }

  Atomic<std::uint32_t>* owners = nullptr;    ///< words of Owner
  Atomic<std::uint8_t>* class_map = nullptr;  ///< see cache_slot_of
  std::uintptr_t class_map_of_zero = 0;       ///< where that of address 0 would lie
  RemoteFrees* remote_frees = nullptr;
  Slab* slabs = nullptr;

  Owner owner_of(std::size_t slice) const { return Owner(owners[slice].load(std::memory_order_relaxed)); }
  /// The slot of the class of a block; none: the address is none of a block of a thread's slab. It lies in the region.
  /// All that the fast path of free reads, a byte a slice, and by the address itself: what follows waits for this one
  /// load.
  CacheSlot cache_slot_of(const void* pointer) const {
    const std::uintptr_t slice = reinterpret_cast<std::uintptr_t>(pointer) >> slice_shift;
    return CacheSlot(
        reinterpret_cast<const Atomic<std::uint8_t>*>(class_map_of_zero + slice)->load(std::memory_order_relaxed));
  }
};

/// The process's heap region; all zero before reserve_region succeeded, so that every pointer is then foreign.
inline constinit HeapRegion region;

/// Region::reserve for it, once.
inline bool reserve_region(bool small) {
  if (region.mapped() != 0) {
    return true;
  }
  if (!region.reserve(largest_region, heap_table_bytes, small)) {
    return false;
  }
  // Zero pages are valid tables: an untouched Owner, RemoteFrees, Slab or PageTag reads as all zero, which means
  // "nothing here".
  region.owners = reinterpret_cast<Atomic<std::uint32_t>*>(region.tables[1].base);
  region.remote_frees = reinterpret_cast<RemoteFrees*>(region.tables[2].base);
  region.slabs = reinterpret_cast<Slab*>(region.tables[3].base);
  char* const classes = region.tables[4].base;
  region.class_map = reinterpret_cast<Atomic<std::uint8_t>*>(classes);
  region.class_map_of_zero =
      reinterpret_cast<std::uintptr_t>(classes) - (reinterpret_cast<std::uintptr_t>(region.base) >> slice_shift);
  return true;
}

}  // namespace blockyard::heap
