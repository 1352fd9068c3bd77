// How much the program takes, and how much memory therefore stands ready for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "heap/settings.hpp"
#include "heap/slab_tables.hpp"

namespace blockyard::heap {

/// All figures in pages, all operations O(1). What the program reads comes first, in a cache line of its own; the rest
/// is for the round of maintenance, in which one thread is at a time.
class alignas(64) ReserveTarget {
 public:
  constexpr ReserveTarget() = default;

  /// What the heap's other parts count, at the beginning of a round.
  struct Seen {
    std::uint64_t now_ns = 0;
    std::uint16_t tick = 0;            ///< of 16 ms
    std::uint64_t taken = 0;           ///< by slabs and blocks, ever
    std::uint64_t missed = 0;          ///< populated by the program, ever
    std::uint64_t lowest_reserve = 0;  ///< since the last round
    std::uint64_t ready_slabs = 0;
  };
  /// At the beginning of a round: what was taken since the last one.
  ///
  /// A burst in one round may be followed by one as large before the background thread is back: the reserve is twice
  /// the largest recent round's. What counts is how far the reserve fell and what it could not serve: what is freed and
  /// taken again meanwhile needs no more of it. Half of it is forgotten each tick, so that nothing is populated for a
  /// load that is over.
  void follow(const Seen& seen) {
    // Of a longer round its part: the background thread lets rounds be long where little is taken.
    constexpr std::uint64_t round_ns = 8'000'000;
    const std::uint64_t elapsed = std::max(seen.now_ns - followed_at_, round_ns);
    followed_at_ = seen.now_ns;
    const auto ticks = static_cast<std::uint16_t>(seen.tick - decayed_at_);
    decayed_at_ = seen.tick;
    taken_last_round_ = seen.taken - taken_seen_;
    taken_seen_ = seen.taken;
    const auto fallen = [](std::uint64_t before, std::uint64_t to) { return before > to ? before - to : 0; };
    const std::uint64_t run_fall = fallen(reserve_left_, seen.lowest_reserve);
    const std::uint64_t slab_fall = fallen(slabs_left_, seen.ready_slabs);
    const std::uint64_t now = (run_fall + slab_fall + (seen.missed - missed_seen_)) * round_ns / elapsed;
    missed_seen_ = seen.missed;
    // Of what may be taken before the background thread is woken, or before slabs come from the page heap under its
    // lock.
    const std::uint64_t room = std::max<std::uint64_t>(fallen(reserve_left_, pages() / 2), 1);
    const std::uint64_t slab_room = std::max<std::uint64_t>(settings.ready_slabs * pages_per_slice, 1);
    const std::uint64_t spent = std::max(16 * run_fall / room, 16 * slab_fall / slab_room);
    // Where nothing is left to populate, coming back sooner would not help.
    spent_ = exhausted_.load(std::memory_order_relaxed) ? 0 : static_cast<unsigned>(std::min<std::uint64_t>(spent, 64));
    recent_.store(std::max(now, recent_.load(std::memory_order_relaxed) >> std::min<unsigned>(ticks, 63)),
                  std::memory_order_relaxed);
  }
  /// In it: whether more was to stand ready and could not be had.
  void set_exhausted(bool exhausted) { exhausted_.store(exhausted, std::memory_order_relaxed); }
  /// At its end: how far what stands ready falls counts from here on.
  void end_round(std::uint64_t reserve, std::uint64_t ready_slabs) {
    reserve_left_ = reserve;
    slabs_left_ = ready_slabs;
  }

  /// Pages that are to stand ready. Any thread.
  std::uint64_t pages() const { return reserve_for(recent_.load(std::memory_order_relaxed)); }
  /// Likewise when the program takes nothing. Any thread.
  std::uint64_t least_pages() const { return reserve_for(0); }
  /// At least so many bytes of them from now on. Any thread.
  void keep_ready(std::size_t bytes) { reserve_floor_.store(bytes >> page_shift, std::memory_order_relaxed); }
  /// From now on what stands ready, slabs included, is at most a sixteenth of the most that was ever in use, in
  /// whole chunks: none at first.
  void begin_small() { grown_.store(0, std::memory_order_relaxed); }
  /// Whether nothing is to stand ready yet.
  bool is_small() const { return !settings.reserve_is_set && grown_.load(std::memory_order_relaxed) == 0; }
  bool began_small() const { return !settings.reserve_is_set && grown_.load(std::memory_order_relaxed) != fully_grown; }
  /// No more than so many pages, whatever was asked for: where memory is scarce. Any thread.
  void keep_at_most(std::uint64_t pages) { most_ready_.store(pages, std::memory_order_relaxed); }
  std::uint64_t most_ready() const { return most_ready_.load(std::memory_order_relaxed); }
  /// Whether to wake the background thread where so many pages are left of the reserve and so many were in use at once:
  /// half of it, since waking costs the program a system call. Never where it found nothing to populate: then it tries
  /// again when it comes by itself. Any thread.
  bool reserve_is_low(std::uint64_t left, std::uint64_t most_used) {
    const std::uint64_t grown = most_used / 16 / pages_per_chunk * pages_per_chunk;
    if (grown_.load(std::memory_order_relaxed) < grown) [[unlikely]] {
      grown_.store(grown, std::memory_order_relaxed);
    }
    return left < pages() / 2 && !exhausted_.load(std::memory_order_relaxed);
  }
  /// Prefetches what reserve_is_low reads.
  void prefetch() const { __builtin_prefetch(&recent_); }

  /// Pages taken, from the reserve or not, between the last two rounds.
  std::uint64_t taken_last_round() const { return taken_last_round_; }
  /// The most that the program took between those rounds, of what it may take before it has to wake the background
  /// thread; in sixteenths.
  unsigned spent() const { return spent_; }

 private:
  std::uint64_t reserve_for(std::uint64_t recent) const {
    const std::uint64_t configured = settings.reserve_bytes >> page_shift;
    const std::uint64_t grown = settings.reserve_is_set ? fully_grown : grown_.load(std::memory_order_relaxed);
    const std::uint64_t target = std::min(std::max(configured, std::min(2 * recent, 4 * configured)), grown);
    return std::min(std::max(target, reserve_floor_.load(std::memory_order_relaxed)), most_ready());
  }

  static constexpr std::uint64_t fully_grown = ~std::uint64_t{0};

  Atomic<std::uint64_t> reserve_floor_{0};    // set by keep_ready
  Atomic<std::uint64_t> grown_{fully_grown};  // no more stands ready than this
  Atomic<std::uint64_t> recent_{0};           // taken in a round: a maximum that decays
  Atomic<bool> exhausted_{false};
  Atomic<std::uint64_t> most_ready_{~std::uint64_t{0}};  // set by keep_at_most
  alignas(64) std::uint64_t taken_seen_ = 0;             // at the last round
  std::uint64_t missed_seen_ = 0;                        // likewise
  std::uint64_t reserve_left_ = 0;                       // at the end of the last round
  std::uint64_t slabs_left_ = 0;                         // likewise
  std::uint64_t followed_at_ = 0;                        // ns
  std::uint16_t decayed_at_ = 0;                         // tick
  std::uint64_t taken_last_round_ = 0;
  unsigned spent_ = 0;
};

}  // namespace blockyard::heap
