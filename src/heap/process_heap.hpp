// What all threads share: the page heap, the slabs that stand ready, the heaps that wait for a thread, and the counts.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "heap/atomic.hpp"
#include "heap/index_stack.hpp"
#include "heap/page_heap.hpp"
#include "heap/parked_heaps.hpp"
#include "heap/settings.hpp"
#include "heap/thread_heap.hpp"

namespace blockyard::heap {

/// Blocks up to this size are handed out populated, or a ready miss is counted; above it the reserve would be dear.
inline constexpr std::size_t medium_limit = std::size_t{1} << 20;

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

  /// A heap that no thread has, for by_heap_create; null when too many exist.
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
      __builtin_prefetch(&demand_);
    }
  }
  void free_pages(void* block);

  /// What the janitor does in one round; `budget_ns` bounds it between steps (a step populates or purges at most one
  /// chunk). Returns whether there is more to do at once. Any thread; while another is at it, it does nothing: the
  /// janitor that was switched off may be in its last round when a frame ends, or frames end on several threads.
  bool maintain(std::uint64_t budget_ns);
  /// In a forked child, where whoever was at it is gone.
  void forget_maintenance();
  /// Pages that the program took from the reserve between the last two rounds of maintain().
  std::uint64_t taken_lately() const { return taken_lately_.load(std::memory_order_relaxed); }
  /// How much of what may be taken from the reserve before the janitor is woken the program took at most between those
  /// rounds, in sixteenths.
  unsigned spent() const { return spent_.load(std::memory_order_relaxed); }
  /// Whether memory waits that will soon be old enough to be given back.
  bool purge_is_due() const { return purge_is_due_.load(std::memory_order_relaxed); }

  /// Populates so that `bytes` stand ready, now, on the calling thread: at most so many and what large blocks left.
  bool prefault(std::size_t bytes);
  /// Keeps at least `bytes` ready from now on; the janitor does the work.
  void reserve(std::size_t bytes) { reserve_floor_.store(bytes >> page_shift, std::memory_order_relaxed); }
  /// Gives every whole free chunk back, now, as far as it was free at the call. Returns bytes.
  std::size_t trim();

  PageHeap pages;
  std::mutex sweep_lock;  ///< held while the janitor works on parked heaps, and by walkers
  Counts counts;
  Atomic<std::uint16_t> tick{0};  ///< the janitor's clock: 16 ms each, wraps
  Atomic<std::uint32_t> heap_count{0};

  ThreadHeap* heap_at(std::uint32_t index) { return heaps_ + index; }
  /// Heaps that a thread or a program ever had; racy.
  std::uint32_t heaps_in_use() const;
  /// Granules of slabs that stand ready; racy.
  std::uint32_t ready_granules() const;

 private:
  // Slabs cut in advance, one stack for each length: 1, 2 and 4 granules.
  struct ReadySlabs {
    IndexStack<> stack;
    Atomic<std::uint32_t> count{0};
  };
  static constexpr unsigned slab_lengths = 3;

  ReadySlabs& ready_of(std::uint32_t granules) { return ready_slabs_[granules >> 1]; }
  static std::uint32_t ready_target(std::uint32_t granules);
  bool cut_ready_slab(std::uint32_t granules);
  void drop_surplus_slabs();
  void push_ready(std::uint32_t granule, std::uint32_t granules);
  bool reserve_heaps();
  ThreadHeap* construct_heap();
  void keep_spare_heaps();
  ThreadHeap* new_heap(std::uint32_t waiting);
  bool populate_chunk();
  std::uint64_t kept_free(std::uint64_t used, std::uint64_t in_short_runs) const;
  std::uint64_t kept_of(std::uint64_t used, std::uint64_t in_short_runs) const;
  std::uint64_t never_needed(std::uint64_t used) const;
  bool maintain_alone(std::uint64_t budget_ns);
  bool purge_chunk();
  void give_tables_back();
  bool sweep_parked();
  void free_blocks_of_parked(std::uint16_t now);
  void follow_demand(std::uint64_t now_ns);
  static std::uint64_t reserve_for(std::uint64_t demand);
  std::uint64_t reserve_target() const;
  bool reserve_is_low() const;
  void touch(std::uint32_t first_page, std::uint32_t length, Atomic<std::uint64_t>& counter);

  std::array<ReadySlabs, slab_lengths> ready_slabs_{};
  ParkedHeaps<> parked_;
  Atomic<std::uint64_t> reserve_floor_{0};  // pages
  Atomic<std::uint64_t> slab_pages_taken_{0};
  std::uint64_t consumed_seen_ = 0;  // pages of slabs and blocks at the last round; in maintain() only
  std::uint64_t past_demand_ = 0;    // likewise: as demand_, but decays slowly
  std::uint64_t followed_at_ = 0;    // likewise: time of the last round
  std::uint64_t missed_seen_ = 0;    // likewise: pages that the program populated
  std::uint64_t reserve_left_ = 0;   // likewise: pages, at the end of the last round
  PageHeap::Lowest lowest_now_;      // likewise: the least since lowest_since_
  PageHeap::Lowest lowest_before_;   // likewise: in the purge age before that
  std::uint16_t lowest_since_ = 0;   // likewise: tick
  std::uint64_t slabs_left_ = 0;     // likewise: granules of ready slabs
  std::uint64_t long_seen_ = 0;      // likewise: long blocks taken
  std::uint16_t decayed_at_ = 0;     // likewise
  std::uint16_t quiet_ticks_ = 0;    // likewise: since the program last took much in a round
  std::uint64_t tables_at_ = 0;      // likewise: pages given back when tables last were
  std::uint16_t tables_epoch_ = 0;   // likewise: of the turn that gives tables back; 0: none is underway
  std::uint32_t parked_slabs_ = 0;   // in sweep_parked() only: of heaps that this turn of it has seen
  std::uint32_t parked_before_ = 0;  // likewise: after the turn that the depot was last emptied for, or fewer since
  std::uint16_t emptied_at_ = 0;     // likewise: tick at which it was
  std::uint16_t empty_after_ = 0;    // likewise: ticks until it may be again
  // Ticks since the last round in which long blocks were taken, at most a second's.
  Atomic<std::uint16_t> since_long_{64};
  Atomic<std::uint64_t> taken_lately_{0};
  Atomic<unsigned> spent_{0};
  Atomic<bool> exhausted_{false};  // the last round of maintain() wanted more ready and could not populate it
  Atomic<bool> purge_is_due_{false};
  Atomic<bool> maintaining_{false};
  Atomic<std::uint64_t> demand_{0};  // pages taken in a round: a maximum that decays
  Atomic<int> state_{0};             // 0 untouched, 1 being readied, 2 ready, 3 failed
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
