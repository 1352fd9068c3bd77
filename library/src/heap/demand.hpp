// How much the program takes, and what is therefore kept ready, and free, for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "heap/atomic.hpp"
#include "heap/page_heap.hpp"
#include "heap/region.hpp"
#include "heap/settings.hpp"

namespace blockyard::heap {

/// Figures of the last rounds of maintenance, in pages. What says nothing of threads is for that round alone, which one
/// thread is in at a time. All O(1). First, in a line of their own, those that the program looks at.
class alignas(64) Demand {
 public:
  constexpr Demand() = default;

  /// At the beginning of a round, the tick already counted: what was taken since the last one, in which so many pages were
  /// left of the reserve at least.
  void follow(std::uint64_t now_ns, std::uint64_t lowest_reserve);
  /// In it: whether more is wanted ready, and could not be had.
  void set_exhausted(bool exhausted) { exhausted_.store(exhausted, std::memory_order_relaxed); }
  /// At its end: from here on it shows how far what stands ready falls.
  void end_round();

  /// Pages that are to stand ready. Any thread.
  std::uint64_t reserve_target() const {
    return std::max(reserve_for(demand_.load(std::memory_order_relaxed)),
                    reserve_floor_.load(std::memory_order_relaxed));
  }
  /// Of them as many as when the program takes nothing. Any thread.
  std::uint64_t least_reserve() const {
    return std::max(reserve_for(0), reserve_floor_.load(std::memory_order_relaxed));
  }
  /// At least so many bytes of them from now on. Any thread.
  void keep_ready(std::size_t bytes) { reserve_floor_.store(bytes >> page_shift, std::memory_order_relaxed); }
  /// Whether the janitor is to be woken where so many pages are left of the reserve: half, not more, since to wake it took
  /// the program's thread 20 to 30 us where it had the reserve filled from three quarters on. Nor where it found nothing
  /// to populate, at the limit of the address space: it tries again when it comes by itself (measured under ulimit -v: it
  /// was woken 300 to 1,000 times a second, for nothing). Any thread.
  bool reserve_is_low(std::uint64_t left) const {
    return left < reserve_target() / 2 && !exhausted_.load(std::memory_order_relaxed);
  }
  /// Asks for the line that reserve_is_low looks at.
  void prefetch() const { __builtin_prefetch(&demand_); }

  /// Pages taken, from the reserve or not, between the last two rounds. Any thread.
  std::uint64_t taken_lately() const { return taken_lately_.load(std::memory_order_relaxed); }
  /// How much of what may be taken from the reserve before the janitor is woken the program took at most between those
  /// rounds, in sixteenths. Any thread.
  unsigned spent() const { return spent_.load(std::memory_order_relaxed); }

 private:
  static std::uint64_t reserve_for(std::uint64_t demand) {
    const std::uint64_t configured = settings.reserve_bytes >> page_shift;
    return std::max(configured, std::min(2 * demand, 4 * configured));
  }

  Atomic<std::uint64_t> reserve_floor_{0};  // what keep_ready asked for
  Atomic<std::uint64_t> demand_{0};         // taken in a round: a maximum that decays
  Atomic<bool> exhausted_{false};
  std::uint64_t consumed_seen_ = 0;  // of slabs and blocks, at the last round
  std::uint64_t missed_seen_ = 0;    // populated by the program, likewise
  std::uint64_t reserve_left_ = 0;   // at the end of the last round
  std::uint64_t slabs_left_ = 0;     // granules of ready slabs, likewise
  std::uint64_t followed_at_ = 0;    // ns: the last round
  std::uint16_t decayed_at_ = 0;     // tick
  Atomic<std::uint64_t> taken_lately_{0};
  Atomic<unsigned> spent_{0};
};

}  // namespace blockyard::heap
