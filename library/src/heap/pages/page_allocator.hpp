// Populated memory for the program: slabs, and blocks of whole pages. From what stands ready where it can, else the
// calling thread populates for itself, and that is counted as a ready miss. And how it comes to stand ready: the
// reserve, and the slabs cut out of it, which a round of maintenance fills up in steps of one chunk at most.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/threads.hpp"
#include "heap/index_stack.hpp"
#include "heap/pages/reserve_target.hpp"
#include "heap/settings.hpp"
#include "heap/slab_tables.hpp"
#include "pages/page_heap.hpp"
#include "pages/purge.hpp"

namespace blockyard::heap {

/// Slabs that stand ready: cut in advance and populated, so that taking one needs neither a lock nor a page fault. One
/// stack for each length of slab. A slab is named by its first slice; 0 is none. Thread-safe and lock-free.
class ReadySlabs {
 public:
  static constexpr std::array<std::uint32_t, 3> lengths{1, 2, 4};  ///< slices

  /// How many of a length the background thread keeps. Longer slabs are taken far less often: an eighth as many of
  /// each.
  static std::uint32_t target(std::uint32_t slices) {
    const auto slabs = static_cast<std::uint32_t>(settings.ready_slabs);
    return slices == 1 ? slabs : slabs / 8;
  }

  /// How many of a length there are; racy.
  std::uint32_t count(std::uint32_t slices) const { return of_[slices >> 1].count.load(std::memory_order_relaxed); }

  /// The slab given last; 0: there is none.
  std::uint32_t take(std::uint32_t slices) {
    OneLength& slabs = of_[slices >> 1];
    const std::uint32_t slice = slabs.stack.pop(link);
    if (slice != 0) {
      slabs.count.fetch_sub(1, std::memory_order_relaxed);
    }
    return slice;
  }

  void give(std::uint32_t slice, std::uint32_t slices) {
    OneLength& slabs = of_[slices >> 1];
    slabs.count.fetch_add(1, std::memory_order_relaxed);
    slabs.stack.push(slice, link);
  }

  /// Pages of all of them; racy.
  std::uint64_t pages() const {
    std::uint64_t sum = 0;
    for (const std::uint32_t length : lengths) {
      sum += std::uint64_t{count(length)} * length * pages_per_slice;
    }
    return sum;
  }

 private:
  struct OneLength {
    IndexStack<> stack;
    Atomic<std::uint32_t> count{0};
  };

  static Atomic<std::uint32_t>& link(std::uint32_t slice) { return region.remote_frees[slice].pending_next; }

  std::array<OneLength, lengths.size()> of_{};
};

struct Counts {
  Atomic<std::uint64_t> ready_misses_slab{0};     ///< slabs for which no populated memory was waiting
  Atomic<std::uint64_t> ready_misses_medium{0};   ///< blocks above small_limit up to medium_limit, likewise
  Atomic<std::uint64_t> populated_ahead{0};       ///< pages
  Atomic<std::uint64_t> populated_by_program{0};  ///< pages, after ready misses
  Atomic<std::uint64_t> large_blocks{0};          ///< blocks above medium_limit handed out
};

/// Bits of PageTag::flags of a block of whole pages.
enum PageFlag : std::uint8_t {
  page_populated = 1,  ///< every page is populated: the run may go back as ready
  page_of_arena = 2,   ///< stands in the list of an arena
  page_cached = 4,     ///< freed, and kept by some thread
  page_guarded = 8,    ///< ends with a page that nobody may touch
};

class PageAllocator {
 public:
  constexpr PageAllocator() = default;
  PageAllocator(const PageAllocator&) = delete;

  /// First slice of so many populated, aligned slices; 0 when memory is exhausted. Lock-free while such slabs stand
  /// ready.
  std::uint32_t take_slab(std::uint32_t slices) {
    const std::uint32_t slice = ready_slabs.take(slices);
    if (slice == 0) {
      return take_slab_of_pages(slices);
    }
    slab_pages_taken_.fetch_add(slices * pages_per_slice, std::memory_order_relaxed);
    return slice;
  }
  /// Likewise, of pages that nobody populated: who touches one waits for it. 0 also where none are left to populate.
  std::uint32_t take_bare_slab(std::uint32_t slices);
  void give_slab(std::uint32_t slice, std::uint32_t slices, bool populated);

  /// First page of a block of whole pages; 0 when memory is exhausted. `*zeroed` tells whether the operating system has
  /// just zeroed it. O(1) plus, after a ready miss, one write a page.
  std::uint32_t take_pages(std::size_t size, std::size_t alignment, bool* zeroed);
  void give_pages(std::uint32_t first_page);
  /// Prefetches what take_pages reads first.
  void prefetch(std::size_t size) {
    if (size <= medium_limit) {
      pages.prefetch_lists(pages_of(size));
      reserve_target.prefetch();
    }
  }

  /// Pages that count as reserve. Where little is to stand ready, slabs do too.
  std::uint64_t pages_in_reserve() const {
    return pages.pages_in_reserve() + (reserve_target.began_small() ? ready_slabs.pages() : 0);
  }

  /// Whether a thread that finds nothing ready populates what it takes. Not while a preloaded program is small: nothing
  /// is made ready for it, and pages that it never touches would cost it memory.
  bool populates_on_a_miss() const { return !reserve_target.is_small(); }

  /// Whether the thread that frees a run of so many pages may keep it. Where nothing is made ready, the runs that it
  /// keeps, one of each length, are a sixteenth of the most that was in use.
  bool may_be_cached(std::uint32_t length) const {
    constexpr std::uint64_t used_for_each_page = 170;
    return populates_on_a_miss() || length <= pages.most_used() / used_for_each_page;
  }

  /// Writes to each page of a run that the caller owns, which populates it, and counts them in `counter`. Populating by
  /// touching takes only the lock of the mapping; the populate calls of the kernel hold that of the whole address
  /// space, and stall every other thread's mmap.
  void populate(std::uint32_t first_page, std::uint32_t length, Atomic<std::uint64_t>& counter);

  /// Populates a chunk that becomes part of the reserve. What large blocks left is mostly resident, so that writing to
  /// it costs next to nothing: with `dirty_first` it is taken first, else only where nothing else is to be had. False
  /// where nothing is left to populate. `may_try_huge`: it may be a trial of huge pages (purge.hpp).
  bool populate_chunk(bool dirty_first, bool may_try_huge);
  /// Cuts one slab of so many slices that then stands ready. False when memory is exhausted.
  bool cut_ready_slab(std::uint32_t slices);
  /// Populates on the calling thread until `bytes` stand ready. False when they cannot be had. Any thread.
  bool prefault(std::size_t bytes);
  /// The first reserve and the first slabs, before anybody allocates.
  void make_first_reserve();
  /// Grows a block in place where no other run is long enough: waits for the background thread's round to end, as a
  /// malloc at the memory limit does. False when it can't.
  bool grow_at_limit(std::uint32_t page, std::uint32_t length);
  /// Gives ready slabs back to the page heap: all, or those beyond their target.
  void uncut_ready_slabs(bool all);

  /// Pages of slabs and blocks that were ever handed out.
  std::uint64_t taken() const { return slab_pages_taken_.load(std::memory_order_relaxed) + pages.pages_taken(); }

  PageHeap pages{region};
  HugePages huge_pages{region};
  static_assert(largest_region <= HugePages::most_bytes);
  Purge purge{pages, huge_pages};
  ReadySlabs ready_slabs;
  ReserveTarget reserve_target;
  Counts counts;
  Atomic<std::uint16_t> tick{0};  ///< the background thread's clock: 16 ms each, wraps
  Atomic<bool> working{
      false};  ///< held by who does the background thread's work, and by who must not be disturbed by it

 private:
  std::uint32_t take_slab_of_pages(std::uint32_t slices);
  PageRun take(std::uint32_t length, std::uint32_t alignment, Prefer prefer, PageState use);
  PageRun take_at_limit(std::uint32_t length, std::uint32_t alignment, PageState use);
  template <class Attempt>
  void between_rounds(Attempt attempt);

  Atomic<std::uint64_t> slab_pages_taken_{0};
};

extern PageAllocator page_allocator;

}  // namespace blockyard::heap
