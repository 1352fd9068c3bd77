// The one stretch of address space that all blocks come from, and the flat side tables that describe it.
//
// A pointer is ours when its offset from `base` is below `bytes`: one subtraction and one compare. What lies behind it
// is read from the tables, never from the block's neighbourhood, so a foreign pointer is detected and never
// dereferenced.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "heap/atomic.hpp"
#include "heap/front/slab_shape.hpp"

namespace blockyard::heap {

inline constexpr std::size_t page_shift = 12;
inline constexpr std::size_t page_bytes = std::size_t{1} << page_shift;
inline constexpr std::size_t pages_per_slice = slice_bytes / page_bytes;
inline constexpr std::size_t chunk_bytes = std::size_t{2}
                                           << 20;  ///< what the janitor populates and purges at once: a huge page
inline constexpr std::size_t pages_per_chunk = chunk_bytes / page_bytes;
/// The region's first bytes, half a chunk, are never mapped. What a program writes before the first block then faults;
/// and as long as it needs only the rest of that chunk, what it writes a megabyte behind a block does, too.
inline constexpr std::size_t never_mapped = chunk_bytes / 2;
#if BLOCKYARD_CHECKED
inline constexpr std::size_t largest_region = std::size_t{32} << 30;  // its tables take twice as much again
#else
inline constexpr std::size_t largest_region = std::size_t{256} << 30;
#endif

/// Address space that the table of all heaps may take.
inline constexpr std::size_t heap_table_bytes = std::size_t{5} << 30;

/// Whose slab lies in a slice, and of which class: what every free asks that is not the plain case, for which
/// Region::entry_at has a byte. Four bytes, so that one cache line answers for 256 KiB of blocks: an entry of 32 bytes
/// that also held the remote list was a cache miss for most frees of cold blocks.
class Owner {
 public:
  constexpr explicit Owner(std::uint32_t word) : word_(word) {}
  constexpr Owner(std::uint32_t heap, unsigned size_class, std::uint32_t back, bool own)
      : word_(size_class | heap << 8 | back << 24 | (own ? arena_bit : 0)) {}

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
  void* free = nullptr;      ///< freed blocks, last in first out, see free_links.hpp; `limit`: none
  char* bump = nullptr;      ///< `limit`, or the first block of a slab that has handed none out
  char* limit = nullptr;     ///< end of the last block
  std::uint32_t used = 0;    ///< blocks handed out, remote frees not yet adopted included
  std::uint32_t notify = 0;  ///< free() takes the slow path when `used` falls to this: 0, or capacity - 1 when detached
  std::uint32_t capacity = 0;
  std::uint32_t block_bytes = 0;
  std::uint32_t next = 0;  ///< links in the heap's list of slabs with room (index, 0 is none)
  std::uint32_t previous = 0;
  std::uint8_t size_class = 0;
  std::uint8_t state = 0;  ///< SlabState
  std::uint8_t slices = 0;
  bool populated = false;     ///< each page is
  std::uint32_t inverse = 0;  ///< of block_bytes: class_inverse
  std::uintptr_t key = 0;     ///< of links in `free`; another each time the slab starts to hand out its blocks
};
static_assert(sizeof(Slab) == 64);

/// A run of pages is described at its first and last page (boundary tags); the last one's state counts where the run is
/// free. Guarded by the page heap's lock.
struct PageTag {
  std::uint32_t length = 0;  ///< pages of the run that begins (or, at its last page, ends) here
  std::uint32_t next = 0;    ///< free runs: links in their list (page index, 0 is none)
  std::uint32_t previous = 0;
  std::uint8_t state = 0;  ///< PageState
  std::uint8_t flags = 0;  ///< used runs: PageFlag
  std::uint16_t heap = 0;  ///< blocks of an arena: its index
};
static_assert(sizeof(PageTag) == 16);

struct Region {
  char* base = nullptr;
  std::size_t bytes = 0;                      ///< mapped so far, the first never_mapped included; see mapped()
  std::size_t units = 0;                      ///< bytes / block_alignment
  std::size_t most_bytes = 0;                 ///< how far it may grow, a multiple of chunk_bytes
  std::size_t alignment = 0;                  ///< of base: the largest alignment that a block can have
  Atomic<std::uint32_t>* owners = nullptr;    ///< a word of Owner for each slice
  Atomic<std::uint8_t>* class_map = nullptr;  ///< a byte for each slice: see entry_at
  std::uintptr_t class_map_of_zero = 0;       ///< where that of address 0 would lie
  RemoteFrees* remote_frees = nullptr;
  Slab* slabs = nullptr;
  PageTag* pages = nullptr;
  char* heaps = nullptr;  ///< address space of the heap table, heap_table_bytes, of which nothing is mapped here

  std::size_t offset_of(const void* pointer) const {
    return static_cast<std::size_t>(static_cast<const char*>(pointer) - base);
  }
  /// Bytes mapped so far; 0 until the first use. It only grows, and a block comes to a thread after the growth that
  /// made room for it, so any thread may read it at any time.
  std::size_t mapped() const { return grown(bytes); }
  bool contains(const void* pointer) const { return offset_of(pointer) < mapped(); }
  /// Whether it contains the pointer, which is a multiple of block_alignment: the rotation makes any other one greater
  /// than every unit.
  bool contains_aligned(const void* pointer) const {
    return std::rotr(offset_of(pointer), std::countr_zero(block_alignment)) < grown(units);
  }
  /// A plain load where no tool objects: compilers keep an atomic one out of the comparison that needs it, which costs
  /// each free an instruction.
  static std::size_t grown(const std::size_t& what) {
#if defined(__SANITIZE_THREAD__) || BLOCKYARD_DELAYS
    return __atomic_load_n(&what, __ATOMIC_RELAXED);
#else
    return what;
#endif
  }
  Owner owner_of(std::size_t slice) const { return Owner(owners[slice].load(std::memory_order_relaxed)); }
  /// The cache_place of the class of a block; 0: the address is none of a block of a thread's slab. It lies in the
  /// region. All that the fast path of free reads, a byte a slice, and by the address itself: what follows waits for
  /// this one load.
  std::size_t cache_place_at(const void* pointer) const {
    const std::uintptr_t slice = reinterpret_cast<std::uintptr_t>(pointer) >> slice_shift;
    return reinterpret_cast<const Atomic<std::uint8_t>*>(class_map_of_zero + slice)->load(std::memory_order_relaxed);
  }
  std::size_t slice_of(const void* pointer) const { return offset_of(pointer) >> slice_shift; }
  std::size_t page_of(const void* pointer) const { return offset_of(pointer) >> page_shift; }
  char* page_address(std::size_t page) const { return base + (page << page_shift); }
  char* slice_address(std::size_t slice) const { return base + (slice << slice_shift); }
};

inline std::uint32_t slice_of_page(std::uint32_t page) { return static_cast<std::uint32_t>(page / pages_per_slice); }
inline std::uint32_t page_of_slice(std::uint32_t slice) { return static_cast<std::uint32_t>(slice * pages_per_slice); }

/// The process's region; all zero before reserve_region succeeded, so that every pointer is then foreign.
extern Region region;

/// Finds a place for the region, its tables and the heap table, and maps the first chunks, once, or only one for a
/// `small` program; O(1). False when not even one chunk can be had.
bool reserve_region(bool small);

/// Maps the region up to `bytes` at least, a multiple of chunk_bytes, and the tables that describe it. Where the
/// process's address space is limited, room for a thread's stack stays. False when the limits in force, or something
/// that was mapped behind the region, forbid it. One thread at a time, under the page heap's lock; O(1), a handful of
/// system calls for each 32 MiB, or each eighth of a larger region.
bool grow_region(std::size_t bytes);

/// Brings the page of `place` in and changes nothing. It does not race with threads that read or write there, but is
/// hidden from ThreadSanitizer, which takes it for a write (by_heap_check() reads tags while the janitor populates).
[[gnu::no_sanitize_thread]] inline void touch_without_change(void* place) {
  __atomic_fetch_or(static_cast<unsigned char*>(place), static_cast<unsigned char>(0), __ATOMIC_RELAXED);
}

/// Prefetches the line of `place`, which is about to be written, as its only owner: of __builtin_prefetch(place, 1) the
/// compiler makes an ordinary prefetch without flags that name a newer processor, and the write waits once more until
/// the other cores have given the line up. A hint: any address is right, nothing is read or changed.
[[gnu::always_inline]] inline void prefetch_to_write(const void* place) {
#if defined(__x86_64__)
  // PREFETCHW: AMD's processors all have it, Intel's since Broadwell; on older ones of 64 bits it does nothing.
  __asm__ volatile("prefetchw %0" : : "m"(*static_cast<const char*>(place)));
#else
  __builtin_prefetch(place, 1);
#endif
}

/// Writes to every page of the tables that describes `pages` pages from `first_page` on, which the caller owns, and
/// changes nothing there: later lookups cause no page fault.
void populate_tables(std::uint32_t first_page, std::uint32_t pages);

}  // namespace blockyard::heap
