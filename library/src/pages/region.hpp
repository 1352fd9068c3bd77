// A stretch of address space of which a first part is mapped, and flat side tables that describe it. A pointer lies in
// it when its offset from `base` is below `bytes`: one subtraction and one compare. What lies behind it is read from
// the tables, never from the block's neighbourhood, so a foreign pointer is detected and never dereferenced.
//
// There are two: the heap's, which grows in place, and the window of the block allocators, which is reserved whole.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"

namespace blockyard::pages {

using base::Atomic;
using base::StandardAtomics;

inline constexpr std::size_t page_shift = 12;
inline constexpr std::size_t page_bytes = std::size_t{1} << page_shift;
/// A slice is the unit that the heap's slabs are cut in, and that tables grow by.
inline constexpr std::size_t slice_shift = 14;
inline constexpr std::size_t slice_bytes = std::size_t{1} << slice_shift;
inline constexpr std::size_t pages_per_slice = slice_bytes / page_bytes;
/// What is populated and purged at once: a huge page.
inline constexpr std::size_t chunk_bytes = std::size_t{2} << 20;
inline constexpr std::uint32_t pages_per_chunk = chunk_bytes / page_bytes;
/// The heap region's first bytes, half a chunk, are never mapped. What a program writes before the first block then
/// faults; and as long as it needs only the rest of that chunk, what it writes a megabyte behind a block does, too.
inline constexpr std::size_t never_mapped = chunk_bytes / 2;
/// Bytes; every block is aligned at least so.
inline constexpr std::size_t block_alignment = 16;

enum class PageState : std::uint8_t {
  inner = 0,  ///< not the first page of any run, nor the last of a free one
  used_slab,
  used_block,
  in_work,     ///< neither used nor free: the background thread, or who does its work, populates it or gives it back
  free_ready,  ///< every page is populated: may be handed out without a page fault to come
  free_dirty,  ///< unknown: was handed out unpopulated, perhaps never written
  free_decommitted,  ///< unpopulated: the operating system gives zeroed pages at the first touch
};

/// A run of pages is described at its first and last page (boundary tags); the last one's state counts where the run is
/// free. Guarded by the page heap's lock.
struct PageTag {
  std::uint32_t length = 0;  ///< pages of the run that begins (or, at its last page, ends) here
  std::uint32_t next = 0;    ///< free runs: links in their list (page index, 0 is none)
  std::uint32_t previous = 0;
  PageState state{};
  std::uint8_t flags = 0;   ///< used runs: their user's
  std::uint16_t owner = 0;  ///< likewise
};
static_assert(sizeof(PageTag) == 16);

struct Region {
  /// A side table: so many bytes for each slice. It is mapped as the region grows. One with more bytes for a slice than
  /// a page is sparse: populate_tables leaves it.
  struct Table {
    std::size_t bytes_per_slice = 0;
    char* base = nullptr;
    std::size_t mapped = 0;

    bool cover(std::size_t slices, std::size_t step);
  };
  static constexpr std::size_t most_tables = 6;

  char* base = nullptr;
  std::size_t bytes = 0;       ///< mapped so far, the first never_mapped included; see mapped()
  std::size_t units = 0;       ///< bytes / block_alignment
  std::size_t most_bytes = 0;  ///< how far it may grow, a multiple of chunk_bytes
  std::size_t alignment = 0;   ///< of base: the largest alignment that a block can have
  PageTag* pages = nullptr;
  char* beside = nullptr;  ///< address space for a further table, of which nothing is mapped here
  std::array<Table, most_tables> tables{};
  bool began_without_limit = false;        ///< then room stays beside it from its first growth on
  Atomic<bool> asks_for_huge_pages{true};  ///< what is mapped from now on; purge.hpp

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
  std::size_t slice_of(const void* pointer) const { return offset_of(pointer) >> slice_shift; }
  std::size_t page_of(const void* pointer) const { return offset_of(pointer) >> page_shift; }
  char* page_address(std::size_t page) const { return base + (page << page_shift); }
  char* slice_address(std::size_t slice) const { return base + (slice << slice_shift); }

  /// Finds a place for at most `most` bytes, the tables and `bytes_beside` for a further one, and maps the first
  /// chunks, once, or only one for a `small` program; O(1). The first of `tables` is that of page tags. False when not
  /// even one chunk can be had.
  bool reserve(std::size_t most, std::size_t bytes_beside, bool small);

  /// Maps the region up to `wanted` bytes at least, a multiple of chunk_bytes, and the tables that describe it. Where
  /// the process's address space is limited, room for a thread's stack stays. False when the limits in force, or
  /// something that was mapped behind the region, forbid it. One thread at a time, under the page heap's lock; O(1), a
  /// handful of system calls for each 32 MiB, or each eighth of a larger region.
  bool grow(std::size_t wanted);

  /// Writes to every page of the tables that describes `count` pages from `first_page` on, which the caller owns, and
  /// changes nothing there: later lookups cause no page fault.
  void populate_tables(std::uint32_t first_page, std::uint32_t count) const;

 private:
  bool lay_out(std::size_t most, std::size_t bytes_beside, std::size_t room_above);
  bool map_first(bool small);
  bool map_up_to(std::size_t wanted, std::size_t table_step, std::size_t room = 0);
};

/// Pages that hold so many bytes, which some region can have.
constexpr std::uint32_t pages_of(std::size_t bytes) {
  return static_cast<std::uint32_t>((bytes + page_bytes - 1) >> page_shift);
}
inline std::uint32_t slice_of_page(std::uint32_t page) { return static_cast<std::uint32_t>(page / pages_per_slice); }
inline std::uint32_t page_of_slice(std::uint32_t slice) { return static_cast<std::uint32_t>(slice * pages_per_slice); }

/// Brings the page of `address` in and changes nothing. It does not race with threads that read or write there, but is
/// hidden from ThreadSanitizer, which takes it for a write (by_heap_check() reads tags while the background thread
/// populates).
[[gnu::no_sanitize_thread]] inline void touch_without_change(void* address) {
  __atomic_fetch_or(static_cast<unsigned char*>(address), static_cast<unsigned char>(0), __ATOMIC_RELAXED);
}

/// Prefetches the line of `address`, which is about to be written, as its only owner: of __builtin_prefetch(address, 1)
/// the compiler makes an ordinary prefetch without flags that name a newer processor, and the write waits once more
/// until the other cores have given the line up. A hint: any address is right, nothing is read or changed.
[[gnu::always_inline]] inline void prefetch_to_write(const void* address) {
#if defined(__x86_64__)
  // PREFETCHW: AMD's processors all have it, Intel's since Broadwell; on older ones of 64 bits it does nothing.
  __asm__ volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}

}  // namespace blockyard::pages
