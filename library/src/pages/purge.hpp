// How memory goes back to the operating system, and as what pages it comes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/pages.hpp"
#include "pages/page_heap.hpp"
#include "pages/region.hpp"

namespace blockyard::pages {

/// Which chunks of the region may be huge pages, and how memory goes back to the operating system.
///
/// The whole region asks for huge pages, so that the first touch of a chunk brings all of it in. But where huge pages
/// are wanted, Linux's khugepaged makes one of every 2 MiB in which a single page is populated: it fills again what was
/// given back of a chunk, and threads that use the rest wait meanwhile. So a chunk that is given back in part asks for
/// small pages until all of it has gone back.
///
/// A huge page is cleared in 0.1 ms. But the kernel of a virtual machine may give free memory to its host, and the
/// first write to such a page takes 5 to 7 ms, in which the host brings in each 4 KiB of it; as small pages the same
/// takes 1 ms. So once a first touch was that dear the region asks for small pages, until a trial after ten seconds,
/// which only the background thread and by_heap_prefault make. A preloaded heap begins on small pages, and the
/// background thread's first chunk is the trial: a program that hardly allocates never has one.
///
/// Bound: at most two system calls more for a purge. A chunk that asks for other pages than its neighbours is a mapping
/// of its own, of which a process may have 65,530: at most most_small_chunks do, 8 GiB; what is left of others
/// khugepaged may fill.
class HugePages {
 public:
  /// Of the largest region.
  static constexpr std::size_t most_bytes = std::size_t{256} << 30;

  constexpr explicit HugePages(Region& region) : region_(region) {}

  /// Allows huge pages or forbids them, everywhere, once the region is reserved. A system call, and for huge pages one
  /// more for each chunk that was given back in part.
  void allow(bool allowed);
  /// The same before it is reserved. `begin_small`: on small pages, until a trial.
  void allow_from_start(bool allowed, bool begin_small);

  /// Whether what is touched next is asked for as huge pages.
  bool asks() const { return region_.asks_for_huge_pages.load(std::memory_order_relaxed); }

  /// Gives pages back that the caller owns; the next touch finds them zeroed. At most two chunks. False, and the
  /// contents stay, where the system refuses.
  [[nodiscard]] bool give_back(std::uint32_t first_page, std::uint32_t pages);

  /// Has the chunk of a page ask for small pages until all of it has gone back: what is touched of it by the page is to
  /// take no more. A system call, once a chunk.
  void keep_small(std::uint32_t page);

  /// Calls touch(), the first touch of pages of one chunk, which the caller owns, and learns from it whether huge pages
  /// are dear: where that has changed, the region asks for the other kind, a system call or more. `may_try`: a huge
  /// page may be asked for to see whether they still are.
  template <class Touch>
  void first_touch(std::uint32_t first_page, bool may_try, Touch&& touch) {
    const bool tries = may_try && try_one(first_page);
    const std::uint64_t begun = base::thread_time_ns();  // whoever ran in between does not count
    touch();
    learn(first_page, tries, base::thread_time_ns() - begun);
  }

 private:
  static constexpr std::uint32_t most_small_chunks = 4096;
  static constexpr std::size_t most_chunks = most_bytes / chunk_bytes;

  char* address_of(std::uint32_t chunk) const { return region_.page_address(std::size_t{chunk} * pages_per_chunk); }
  bool try_one(std::uint32_t first_page);
  void learn(std::uint32_t first_page, bool tried, std::uint64_t took_ns);
  void ask_everywhere(bool huge);
  void allow_huge(std::uint32_t chunk);

  Region& region_;
  Atomic<bool> allowed_{true};
  Atomic<std::uint64_t> next_trial_{0};  // ns
  // A bit for each chunk that asks for small pages, or will where the region asks for huge ones again. Two threads that
  // give parts of one chunk back at once may leave it with the wrong advice: no harm but a chunk on small pages.
  std::array<Atomic<std::uint64_t>, most_chunks / 64> small_chunks_{};
  Atomic<std::uint32_t> small_count_{0};
};

/// Giving free memory back to the operating system, by one rule:
///
/// What goes back is the free memory that nobody needed for a while (BLOCKYARD_HEAP_PURGE, half a second): as much as
/// was free at every moment of that time. What stays of it is the reserve, or an eighth of what is in use beyond 64 MiB
/// where that is more; no more than ReserveTarget::most_ready where memory is scarce.
///
/// How much was free counts, not how old a run is: where blocks come and go, the run that they are cut from is merged
/// and cut again all the time, and so never old. Longest runs go first, whole chunks out of them, so that huge pages
/// stay whole.
///
/// All figures in pages. For the round of maintenance, in which one thread is at a time. All O(1).
class Purge {
 public:
  constexpr Purge(PageHeap& pages, HugePages& huge_pages) : pages_(pages), huge_pages_(huge_pages) {}

  /// Since the last call so many pages were free at some moment, and so many of them in runs of the reserve.
  void note(const PageHeap::Lowest& lowest) { now_.add(lowest); }
  /// Likewise, at the beginning of a round; `reserve` pages are to stand ready. `delay`: how long a need counts.
  void follow(std::uint16_t tick, const PageHeap::Lowest& lowest, std::uint64_t reserve, std::uint16_t delay);

  /// What goes back where `used` pages are in use, at least `reserve` stay, and at most `most`.
  std::uint64_t surplus(std::uint64_t used, std::uint64_t reserve, std::uint64_t most = ~std::uint64_t{0}) const {
    constexpr std::uint64_t none_below = (std::uint64_t{64} << 20) / page_bytes;
    const std::uint64_t kept = std::min(std::max(reserve, (std::max(used, none_below) - none_below) / 8), most);
    const std::uint64_t least = std::min(before_.free, now_.free);
    return least > kept ? least - kept : 0;
  }

  /// Gives one run of the surplus back. False: there is none.
  bool purge_one(std::uint64_t reserve, std::uint64_t most);

  /// Gives a run that is in work back. One to three system calls. False where the system refuses, as of locked memory:
  /// the run is then free and dirty. Any thread.
  [[nodiscard]] bool purge_run(const PageRun& run);

  /// Pages given back, ever. Any thread.
  std::uint64_t purged() const { return purged_.load(std::memory_order_relaxed); }

 private:
  // The extremes of a stretch of time.
  struct Stretch {
    std::uint64_t free = 0;            // the least that was free
    std::uint64_t reserve = 0;         // the least that was in runs of the reserve
    std::uint64_t reserve_target = 0;  // the most that was to stand ready

    void add(const PageHeap::Lowest& lowest) {
      free = std::min(free, lowest.free);
      reserve = std::min(reserve, lowest.reserve);
    }
    void take(std::uint64_t pages, bool of_reserve) {
      free -= std::min(free, pages);
      reserve -= of_reserve ? std::min(reserve, pages) : 0;
    }
  };

  PageHeap& pages_;
  HugePages& huge_pages_;
  Atomic<std::uint64_t> purged_{0};
  Stretch now_;
  Stretch before_;
  std::uint16_t since_ = 0;  // tick at which now_ began
};

}  // namespace blockyard::pages
