// Runs of whole pages out of a region: the heap's slabs, its blocks above small_limit and its reserve; and the slabs of
// the block allocators, whose pages are granules of 32 KiB.
//
// Bound: allocate and free are O(1): a two-level segregated fit over pages, with boundary tags kept
// apart from the pages, at most two merges and two splits a call; for a large block at most nine runs are taken
// together. Overhead: 16 bytes a page. Free runs come in three states that do not merge with one another, so that a
// run's state is true of all its pages. At the memory limit allocate_merged makes one state of them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/atomic.hpp"
#include "base/pages.hpp"
#include "base/threads.hpp"
#include "pages/region.hpp"

namespace blockyard::pages {

/// The lock of the page heap. Below the memory limit it is held for tens of instructions, so a thread that finds it
/// taken spins for a while before it parks: parking costs both sides a system call.
///
/// Unlocking a mutex of the C library is an atomic read-modify-write, which waits until every store before it has got
/// its cache line; the stores here are to tags of pages, which are cold. So unlocking is a plain store, and only then
/// reads whether somebody waits. That read may come too early: then nobody wakes a thread that just went to sleep,
/// which is why it sleeps for a bounded time only.
///
/// Bound: 64 spins with a pause each, some microseconds, then it parks: the holder has lost its processor. A lost
/// wake-up costs longest_sleep_ns.
template <class Atomics = base::StandardAtomics>
class BasicPageLock {
 public:
  void lock() {
    if (!try_lock()) [[unlikely]] {
      wait_for_it();
    }
  }
  bool try_lock() { return word_.exchange(taken, std::memory_order_acquire) == free; }
  void unlock() {
    word_.store(free, std::memory_order_release);
    if (waiting_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      base::wake_one(&word_);
    }
  }
  /// Of two threads: whether the other sleeps for it, and so this one holds it. This one may sleep for it too, and a
  /// signal handler ask meanwhile; and one that nobody woke counts itself only while it sleeps.
  bool is_waited_for_by_other() const {
    return word_.load(std::memory_order_seq_cst) == taken && waiting_.load(std::memory_order_seq_cst) != 0 &&
           sleeper_.load(std::memory_order_relaxed) != &errno;
  }
  /// In a forked child, where those that waited for it are gone.
  void forget_waiting() { waiting_.store(0, std::memory_order_relaxed); }
  /// unlock() there.
  void unlock_in_child() {
    forget_waiting();
    word_.store(free, std::memory_order_release);
  }

 private:
  static constexpr std::uint32_t free = 0;
  static constexpr std::uint32_t taken = 1;
  static constexpr std::uint64_t longest_sleep_ns = 200'000;

  [[gnu::noinline, gnu::cold]] void wait_for_it() {
    constexpr int most_spins = 64;
    for (int spin = 0; spin < most_spins; ++spin) {
      if (word_.load(std::memory_order_relaxed) == free && try_lock()) {
        return;
      }
      base::pause();
    }
    do {
      sleeper_.store(&errno, std::memory_order_relaxed);  // names the thread without a system call
      waiting_.fetch_add(1, std::memory_order_seq_cst);
      base::sleep_while(&word_, taken, longest_sleep_ns);
      waiting_.fetch_sub(1, std::memory_order_seq_cst);
    } while (!try_lock());
  }

  typename Atomics::template atomic<std::uint32_t> word_{free};
  typename Atomics::template atomic<std::uint32_t> waiting_{0};
  std::atomic<const int*> sleeper_{nullptr};  // who began to sleep last
};
using PageLock = BasicPageLock<>;

/// Blocks up to this size are handed out populated, or a ready miss is counted; above it a reserve would take too much
/// memory.
inline constexpr std::size_t medium_limit = std::size_t{1} << 20;

/// What an allocation got.
struct PageRun {
  std::uint32_t first = 0;   ///< page index; 0: nothing, the region is exhausted
  std::uint32_t length = 0;  ///< pages
  PageState from = PageState::free_decommitted;

  explicit operator bool() const { return length != 0; }
};

/// Which state to search first.
enum class Prefer : std::uint8_t {
  ready,        ///< ready, dirty, decommitted: what slabs and medium blocks want
  dirty,        ///< dirty, ready, decommitted: large blocks, recycled rather than taken from the reserve
  bare,         ///< dirty, decommitted: what is not to be populated at once
  decommitted,  ///< decommitted only: what the background thread is about to populate
};

/// Free runs of pages by length, to be found in O(1): the index of a two-level segregated fit (Masmano, Ripoll, Crespo,
/// Real, "TLSF: a new dynamic memory allocator for real-time systems", 2004).
///
/// Lengths below 16 pages have a list each; from there on every doubling has 16 lists. A run is found in the first list
/// whose every member is long enough, so at most 1/16 of a request above 16 pages is searched past.
///
/// Runs of one state. Their links stand in the tags of their first pages. No lock: the page heap has one.
class FreeRuns {
 public:
  constexpr explicit FreeRuns(const Region& region) : region_(&region) {}

  /// Adds a run at the head of its list, where find() takes it, or at the tail, where last_of() does. The tag holds the
  /// length.
  void insert(std::uint32_t first, bool at_tail);
  void remove(std::uint32_t first);

  /// A run of at least `length` pages; 0: none is found.
  std::uint32_t find(std::uint32_t length) const;

  /// Likewise with so many pages from a multiple of `alignment` on, among the runs inserted last of those less than
  /// 1/16 longer or shorter, which find() does not look at one by one. O(1).
  std::uint32_t find_near(std::uint32_t length, std::uint32_t alignment) const;

  /// The first run, of the shortest that may do, with so many pages from a multiple of `alignment` on; 0: none.
  /// find() looks at whole lists only, and so past runs of just the right length. O(runs).
  std::uint32_t first_fit(std::uint32_t length, std::uint32_t alignment) const;

  /// Lists are numbered by the length of their runs. That for `length`, at most end_of_lists.
  static std::uint32_t list_of(std::uint32_t length);
  static constexpr std::uint32_t end_of_lists = 24 * 16;
  /// The last list before `list` that has a run; 0: none.
  std::uint32_t next_below(std::uint32_t list) const;
  /// The last run of a list.
  std::uint32_t last_of(std::uint32_t list) const { return ends_[list / row_lists][list % row_lists].tail; }

  /// Pages of all of them.
  std::uint64_t pages() const { return pages_; }

  /// Prefetches what find() reads.
  void prefetch(std::uint32_t length) const {
    const std::uint32_t list = list_of(length);
    __builtin_prefetch(&bitmaps_[list / row_lists]);
    __builtin_prefetch(&ends_[list / row_lists][list % row_lists], 1);
  }

  /// Lists and bitmaps agree with the tags, and there are so many runs. O(runs). Null, or what is broken.
  const char* check(PageState state, std::uint64_t runs) const;

 private:
  static constexpr unsigned rows = 24;  // runs below 2^27 pages: 512 GiB
  static constexpr unsigned row_lists = 16;
  static_assert(end_of_lists == rows * row_lists);

  /// Of one list. They stand together, since they are read together.
  struct Ends {
    std::uint32_t head = 0;  ///< 0: the list is empty
    std::uint32_t tail = 0;  ///< valid where there is a head
  };

  PageTag& tag(std::uint32_t page) const { return region_->pages[page]; }
  std::uint32_t fit_in(std::uint32_t list, std::uint32_t length, std::uint32_t alignment,
                       std::uint32_t most_looked_at) const;

  const Region* region_;
  std::uint32_t row_bitmap_ = 0;  // rows with runs
  std::array<std::uint16_t, rows> bitmaps_{};
  std::array<std::array<Ends, row_lists>, rows> ends_{};
  std::uint64_t pages_ = 0;
};

class PageHeap {
 public:
  constexpr explicit PageHeap(Region& region)
      : region_(region), free_{FreeRuns(region), FreeRuns(region), FreeRuns(region)} {}

  /// Adds the pages from `first` to `end` of a region that does not grow, as decommitted ones. Once, before any other
  /// call; the pages at both ends belong to nobody.
  void open(std::uint32_t first, std::uint32_t end);

  /// A run of `length` pages at a multiple of `alignment` pages (a power of two). O(1). Calls the operating system only
  /// where the region grows.
  PageRun allocate(std::uint32_t length, std::uint32_t alignment, Prefer prefer, PageState use);

  /// The same where allocate() found nothing: first merges free neighbours of different states. O(free runs), once.
  PageRun allocate_merged(std::uint32_t length, std::uint32_t alignment, PageState use);

  /// Gives a run back; `state` says what is known of its pages (free_ready, free_dirty, free_decommitted).
  void free(std::uint32_t first, PageState state);

  /// Shortens a used run to `length` pages; the rest becomes free in `state`.
  void shrink(std::uint32_t first, std::uint32_t length, PageState state);

  /// Lengthens a used run in place to `length` pages out of the free runs behind it, or out of a ready one where it is
  /// to be `populated`. False where they are too short, or more than `most_runs`. O(`most_runs`), else as allocate().
  bool grow(std::uint32_t first, std::uint32_t length, bool populated, std::uint32_t most_runs = 3);

  /// Takes a free run into work, for the background thread to populate or to purge: a whole chunk where the longest run
  /// holds one, else the whole run (then shorter than two chunks). No run longer than `longest`, as far as the lists
  /// distinguish them. Of runs below least_taken only those beside decommitted pages of their chunk, which can then
  /// become whole again; and none that holds no whole page of the system's. Length 0: none. O(1).
  PageRun take_free(PageState state, std::uint32_t longest = no_limit);
  /// Adds to a run in work the decommitted pages beside it, as far as its chunks go. O(1).
  PageRun with_decommitted_neighbours(const PageRun& run);

  /// In a forked child, where the threads that had runs in work are gone: frees these as dirty.
  /// O(such runs).
  void abandon_work();

  /// Pages below which giving a run back is not worth the system call: 64 KiB.
  static constexpr std::uint32_t least_taken = 16;
  static constexpr std::uint32_t no_limit = ~std::uint32_t{0};

  /// Shortest run that counts as reserve, in pages: one that serves every medium block.
  static constexpr std::uint32_t reserve_run = medium_limit >> page_shift;

  struct Totals {
    std::uint64_t ready = 0;        ///< pages free and populated
    std::uint64_t dirty = 0;        ///< pages free, perhaps populated
    std::uint64_t decommitted = 0;  ///< pages free, unpopulated, below the high-water mark
    std::uint64_t used = 0;         ///< pages of slabs and blocks
    std::uint64_t in_work = 0;      ///< pages that are being populated or given back
    std::uint64_t top = 0;          ///< pages below the high-water mark, never_mapped included
  };
  /// All of one moment: they add up.
  Totals totals();
  /// Free ready pages in runs of at least reserve_run pages, read without the lock. Shorter runs serve what fits them,
  /// but a reserve made of them would miss every larger block.
  std::uint64_t pages_in_reserve() const { return __atomic_load_n(&pages_in_reserve_, __ATOMIC_RELAXED); }

  /// Pages that were in use at once, rounded up to chunks: those below the high-water mark. Read without the lock.
  std::uint64_t most_used() const { return __atomic_load_n(&top_, __ATOMIC_RELAXED); }

  struct Lowest {
    std::uint64_t reserve = 0;  ///< pages_in_reserve()
    std::uint64_t free = 0;     ///< free pages that are, or may be, populated: ready and dirty
  };
  /// The least that each has been since the last call.
  Lowest take_lowest();

  /// Pages ever allocated as blocks with Prefer::ready, read without the lock. Counted under it: an atomic
  /// read-modify-write behind an allocation would wait until its stores to cold tags are done.
  std::uint64_t pages_taken() const { return __atomic_load_n(&pages_taken_, __ATOMIC_RELAXED); }

  /// Prefetches what an allocation of so many ready pages reads first. To be called some instructions before: taking
  /// the lock holds back every load behind it until its own line has come.
  void prefetch_lists(std::uint32_t length) {
    __builtin_prefetch(this, 1);
    free_[index_of(PageState::free_ready)].prefetch(length);
  }

  /// Prefetches what freeing the run reads: the tags of its neighbours.
  void prefetch_ends(std::uint32_t first) {
    __builtin_prefetch(&tag(first - 1), 1);
    __builtin_prefetch(&tag(first + tag(first).length), 1);
  }

  /// Walks every run: tags agree at both ends, lengths add up, no two free runs of one state touch, lists and bitmaps
  /// agree with the tags. O(pages). Returns null, or what is broken.
  const char* check();

  /// Held across fork by the heap's fork handlers.
  PageLock& lock() { return lock_; }

 private:
  static constexpr auto first_page = static_cast<std::uint32_t>(never_mapped >> page_shift);

  static unsigned index_of(PageState state) {
    return static_cast<unsigned>(state) - static_cast<unsigned>(PageState::free_ready);
  }
  // How many make one of the system's; from how many on a run is always taken.
  static std::uint32_t system_pages() {
    return std::max(static_cast<std::uint32_t>(base::page_size() >> page_shift), std::uint32_t{1});
  }
  static std::uint32_t always_taken() { return std::max(least_taken, 2 * system_pages() - 1); }
  static bool is_free(PageState state) { return state >= PageState::free_ready; }

  PageTag& tag(std::uint32_t page) const { return region_.pages[page]; }
  auto tags() const {
    return [this](std::uint32_t page) -> PageTag& { return tag(page); };
  }
  void mark(std::uint32_t first, std::uint32_t length, PageState state);
  void mark_inner(std::uint32_t page) { tag(page).state = PageState::inner; }
  void insert(std::uint32_t first, std::uint32_t length, PageState state);
  void remove(std::uint32_t first);
  void count_reserve(std::uint32_t length, PageState state, bool added);
  void enter_work(std::uint32_t first);
  void leave_work(std::uint32_t first);
  void release(std::uint32_t first, std::uint32_t length, PageState state);
  std::pair<std::uint32_t, std::uint32_t> with_decommitted(std::uint32_t first, std::uint32_t end) const;
  bool may_be_purged(std::uint32_t first, std::uint32_t length) const;
  void show_to_purge(std::uint32_t first, std::uint32_t length);
  std::uint32_t find(PageState state, std::uint32_t length) const { return free_[index_of(state)].find(length); }
  bool extend(std::uint32_t length);
  void forget_states();
  PageRun take(std::uint32_t length, std::uint32_t alignment, Prefer prefer, PageState use);
  PageRun take_around_dirty(std::uint32_t length, PageState use);
  void cut_out(std::uint32_t run, std::uint32_t first, std::uint32_t end);
  PageRun carve_at(std::uint32_t found, std::uint32_t first, std::uint32_t end, PageState use);
  PageRun carve(std::uint32_t found, std::uint32_t length, std::uint32_t alignment, PageState use);
  std::uint64_t free_pages() const;
  void note_lowest();

  Region& region_;
  PageLock lock_;
  std::uint32_t bottom_ = 0;  // of the pages that it has
  std::uint32_t top_ = 0;     // pages from here on were never used
  std::uint64_t pages_in_work_ = 0;
  std::uint32_t first_in_work_ = 0;  // 0: none; linked as free runs are
  std::uint64_t pages_in_reserve_ = 0;
  Lowest lowest_;
  std::uint64_t pages_taken_ = 0;
  std::array<FreeRuns, 3> free_;
};

}  // namespace blockyard::pages
