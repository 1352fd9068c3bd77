// What is done behind the program's back, by the background thread or at the end of a frame: memory is populated before
// it is wanted (page_allocator.hpp), heaps that wait for a thread are swept, since they get no slow paths that would
// adopt their remote frees, and what nobody wants any more goes back to the operating system (purge.hpp).
//
// Bound: between two steps a round reads the clock, and a step populates or gives back at most one chunk. A round
// sweeps at most 16 heaps, adopts at most 64 remote-free lists of each, flushes one, and drains at most 16 magazines of
// the depot, 256 at the end of a turn.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/kept_errno.hpp"
#include "base/threads.hpp"
#include "heap/front/heap_table.hpp"
#include "heap/pages/page_allocator.hpp"
#include "heap/transfer/depot.hpp"
#include "pages/injected_failure.hpp"

namespace blockyard::heap {

/// What a round of maintenance found.
struct Round {
  bool more_to_do = false;
  std::uint64_t taken = 0;  ///< pages that the program took since the round before
  unsigned spent = 0;       ///< see ReserveTarget::spent
};

/// How long the background thread sleeps between two rounds. A round costs 10 to 35 us, nearly all of it going to sleep
/// and waking up, so rounds are rare where little is taken: the program may take three eighths of what it may take
/// before it would have to wake the background thread, which is a system call. Where it ran the reserve that low, the
/// pause is short. When nothing was taken for a while the pause doubles up to the longest sleep.
class RoundInterval {
 public:
  static constexpr std::uint64_t shortest_ns = 4'000'000;       ///< up to it, the background thread need not be woken
  static constexpr std::uint64_t longest_busy_ns = 16'000'000;  ///< while the program takes memory
  static constexpr std::uint64_t longest_idle_ns = 250'000'000;

  /// Nanoseconds until the next round, at least `period_ns`.
  std::uint64_t next(const Round& round, std::uint64_t period_ns) {
    constexpr unsigned aim_spent = 6;  // sixteenths
    constexpr unsigned all_spent = 16;
    if (round.more_to_do) {
      idle_ns_ = 0;
      return pause_ = period_ns;
    }
    idle_ns_ = round.taken != 0 ? 0 : idle_ns_ + pause_;
    const std::uint64_t longest = idle_ns_ < longest_idle_ns ? longest_busy_ns : longest_idle_ns;
    std::uint64_t pause = std::min(pause_ * 2, pause_ * aim_spent / std::max(round.spent, 1u));
    if (round.spent >= all_spent) {
      pause = std::min(pause, shortest_ns);
    }
    return pause_ = std::clamp(pause, period_ns, std::max(longest, period_ns));
  }

 private:
  std::uint64_t pause_ = 0;
  std::uint64_t idle_ns_ = 0;
};

class Maintenance {
 public:
  constexpr Maintenance(PageAllocator& allocator, HeapTable& heaps, Depot& depot)
      : allocator_(allocator), heaps_(heaps), depot_(depot) {}

  /// One round; `budget_ns` bounds it between steps. Any thread; while another is at it, it does nothing: the
  /// background thread that was switched off may be in its last round when a frame ends, or frames end on several
  /// threads. `in_background`: it may make a trial of huge pages (purge.hpp), which no budget bounds, and reads
  /// the clock by system calls, since no function of the program may run there.
  Round run(std::uint64_t budget_ns, bool in_background);
  /// The part of a round that gives memory back, for a program with one thread and no background thread: a chunk at
  /// most, whether there was one. A few system calls.
  bool give_back_a_chunk();
  /// In a forked child, where the thread that was at it is gone.
  void forget();
  /// Likewise where the calling thread may hold the locks that the other waited for.
  void forget_later();

  /// Gives every whole free chunk back, now, as far as it was free at the call. Returns bytes. Any thread.
  std::size_t trim();

  /// For a thread at the memory limit: its own heap keeps nothing of what was freed. Cached blocks and runs, other
  /// threads' frees into it and its empty slabs go back, and so do the depot's magazines. O(what it keeps).
  void give_back_kept(ThreadHeap* heap);

  /// For tests: what comes before the paths from which the limits of the process's memory are read.
  Atomic<const char*> memory_root{""};

  /// Held while parked heaps are worked on, by walkers, and across a fork. Not the C library's: to that a program with
  /// one thread has no background thread, and its locks take no atomic operation.
  PageLock sweep_lock;

 private:
  bool begin();
  Round run_alone(std::uint64_t budget_ns, bool in_background);
  std::uint16_t follow(std::uint64_t now_ns);
  void look_at_limits(std::uint16_t tick);
  bool sweep(std::uint16_t tick);
  void drain_for_parked(std::uint16_t tick);
  bool drain_depot(std::uint16_t tick, bool all, std::uint32_t most);
  void empty_depot();

  PageAllocator& allocator_;
  HeapTable& heaps_;
  Depot& depot_;
  bool is_sweeping_ = false;    // under the lock
  bool forgets_later_ = false;  // runs in work are nobody's
  // Of the thread that is at it.
  std::uint16_t looked_at_ = 0;     // tick
  std::uint32_t slabs_ = 0;         // of heaps that this turn of sweeping has seen
  std::uint32_t slabs_before_ = 0;  // likewise, after the turn that the depot was last drained for, or fewer since
  std::uint16_t drained_at_ = 0;    // tick
  std::uint16_t wait_ = 0;          // ticks until it may be drained again
};

extern Maintenance maintenance;

/// Null, and errno says so.
[[gnu::noinline, gnu::cold]] inline void* exhausted() { return base::failed(ENOMEM); }

/// Tries again once the calling thread's heap keeps nothing of what was freed; else exhausted().
template <class Attempt>
[[gnu::noinline, gnu::cold]] void* at_limit(ThreadHeap* heap, Attempt&& attempt) {
  if (failures_are_final || heap == &empty_heap) {
    return exhausted();
  }
  maintenance.give_back_kept(heap);
  void* const block = attempt();
  return block != nullptr ? block : exhausted();
}

}  // namespace blockyard::heap
