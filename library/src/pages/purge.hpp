// Giving free memory back to the operating system, by one rule:
//
// What goes back is the free memory that nobody needed for a while (BLOCKYARD_HEAP_PURGE, half a second): as much as
// was free at every moment of that time. What stays of it is the reserve, or an eighth of what is in use beyond 64 MiB
// where that is more; no more than ReserveTarget::most_ready where memory is scarce.
//
// How much was free counts, not how old a run is: where blocks come and go, the run that they are cut from is merged
// and cut again all the time, and so never old. Longest runs go first, whole chunks out of them, so that huge pages
// stay whole.
#pragma once

#include <algorithm>
#include <cstdint>

#include "pages/huge_pages.hpp"
#include "pages/page_heap.hpp"

namespace blockyard::pages {

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
