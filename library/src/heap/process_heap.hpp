// What all threads share: the page heap, the slabs that stand ready, the heaps that wait for a thread, and the counts.
// Here is what the program asks of them; maintenance.hpp has what is done behind its back.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "heap/atomic.hpp"
#include "heap/demand.hpp"
#include "heap/index_stack.hpp"
#include "heap/page_heap.hpp"
#include "heap/parked_heaps.hpp"
#include "heap/ready_slabs.hpp"
#include "heap/thread_heap.hpp"

namespace blockyard::heap {

struct Counts {
  Atomic<std::uint64_t> ready_misses_slab{0};     ///< slabs for which no populated memory was waiting
  Atomic<std::uint64_t> ready_misses_medium{0};   ///< blocks above small_limit up to medium_limit, likewise
  Atomic<std::uint64_t> populated_by_janitor{0};  ///< pages
  Atomic<std::uint64_t> populated_by_program{0};  ///< pages, at start and after ready misses
  Atomic<std::uint64_t> purged{0};                ///< pages given back to the operating system
  Atomic<std::uint64_t> large_blocks{0};          ///< blocks above medium_limit handed out
};

class ProcessHeap {
 public:
  constexpr ProcessHeap() = default;

  /// Readies the region and the first reserve; the first call does the work, on whatever thread it comes. False when
  /// the address space cannot be had.
  bool initialise();

  /// Gives the calling thread a heap: a parked one when there is one (O(1)), else a new one. Null when memory is
  /// exhausted.
  ThreadHeap* enter_thread();
  /// Parks the calling thread's heap for the next thread to come, with all its slabs and blocks. O(1).
  void leave_thread();

  /// Parks a heap that no thread has any more. O(1).
  void park(ThreadHeap* heap);
  /// The next parked heap to be swept, to be parked again afterwards; null ends the turn. With sweep_lock held.
  ThreadHeap* take_to_sweep();
  /// Makes heaps in advance, as long as few stand ready. With sweep_lock held.
  void keep_spare_heaps();

  /// A heap that no thread has, for by_arena_create; null when too many exist.
  ThreadHeap* make_own_heap();
  /// Gives all blocks of an own heap back, and the heap.
  void destroy_own_heap(ThreadHeap* heap);

  /// First granule of `granules` populated, aligned granules; 0 when memory is exhausted. Lock-free for one granule
  /// while the ready stack has any.
  std::uint32_t take_slab(std::uint32_t granules);
  void give_slab(std::uint32_t granule, std::uint32_t granules);

  /// A block of whole pages, linked to `owner` when that is not null. `*zeroed` tells whether the operating system has
  /// just zeroed it. Null when memory is exhausted. O(1) plus, after a ready miss, one write a page.
  void* allocate_pages(std::size_t size, std::size_t alignment, bool* zeroed, ThreadHeap* owner = nullptr);
  /// Asks for the lines that allocate_pages looks at first.
  void prefetch_pages(std::size_t size) {
    if (size <= medium_limit) {
      pages.prefetch_lists(static_cast<std::uint32_t>((size + page_bytes - 1) >> page_shift));
      demand.prefetch();
    }
  }
  void free_pages(void* block);

  /// Writes to each page of a run that the caller owns, which populates it, and counts them in `counter`.
  void touch(std::uint32_t first_page, std::uint32_t length, Atomic<std::uint64_t>& counter);

  PageHeap pages;
  std::mutex sweep_lock;  ///< held while the janitor works on parked heaps, and by walkers
  Counts counts;
  Atomic<std::uint16_t> tick{0};  ///< the janitor's clock: 16 ms each, wraps
  Atomic<std::uint32_t> heap_count{0};
  ReadySlabs ready_slabs;
  Atomic<std::uint64_t> slab_pages_taken{0};  ///< pages of slabs ever handed out
  Demand demand;

  ThreadHeap* heap_at(std::uint32_t index) { return heaps_ + index; }
  /// Heaps that a thread or a program ever had; racy.
  std::uint32_t heaps_in_use() const;

 private:
  bool reserve_heaps();
  ThreadHeap* construct_heap();
  ThreadHeap* new_heap(std::uint32_t waiting);

  ParkedHeaps<> parked_;
  Atomic<int> state_{0};  // 0 untouched, 1 being readied, 2 ready, 3 failed
  ThreadHeap* heaps_ = nullptr;
  std::uint32_t most_heaps_ = 0;  // entries of heaps_
  IndexStack<> spares_;           // heaps that no thread ever had
  Atomic<std::uint32_t> spare_count_{0};
};

/// Bits of PageTag::flags of a block of whole pages.
enum PageFlag : std::uint8_t {
  page_populated = 1,  ///< every page is populated: the run may go back as ready
  page_owned = 2,      ///< stands in the list of an own heap
  page_kept = 4,       ///< freed, and at hand in some thread's heap
};

extern ProcessHeap process_heap;

}  // namespace blockyard::heap
