// Keeps the journal's order across threads: an event begins when all events before it are over, on whichever thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "clock/clock.hpp"
#include "replay/run/pacer.hpp"
#include "replay/run/session.hpp"

namespace blockyard::replay {

/// Each thread has one. A thread publishes the event that it comes to next; the thread with the lowest such event may
/// go on, so some thread always can. Event numbers only grow: as long as a thread's event is below the lowest that it
/// saw of the others, it needs no check. Otherwise O(threads).
class JournalOrder {
 public:
  JournalOrder(const Session& session, ReplayThread& thread) : session_(session), thread_(thread) {}

  /// The thread has come to `event`: all its earlier events are over.
  void come_to(std::uint32_t event) { thread_.next_event.store(event, std::memory_order_release); }
  /// The thread has no more events.
  void leave() { come_to(none); }

  /// Whether no other thread has an event before this one.
  bool has_come(std::uint32_t event) { return event < others_ || event < (others_ = lowest_of_others()); }

  /// Waits until no other thread has an event before this one. Returns whether it had to wait.
  bool await(std::uint32_t event) {
    if (has_come(event)) return false;
    // As in wait_for_event(): the other thread may need this core.
    const std::uint64_t patience = clock::ticks() + static_cast<std::uint64_t>(sleep_lead_ns * session_.ticks_per_ns);
    while (event >= (others_ = lowest_of_others())) {
      if (clock::ticks() < patience) {
        relax();
      } else {
        sleep_shortly();
      }
    }
    return true;
  }

 private:
  [[nodiscard]] std::uint32_t lowest_of_others() const {
    std::uint32_t lowest = none;
    for (const ReplayThread& other : session_.threads) {
      if (&other != &thread_) lowest = std::min(lowest, other.next_event.load(std::memory_order_acquire));
    }
    return lowest;
  }

  const Session& session_;
  ReplayThread& thread_;
  std::uint32_t others_ = 0;  ///< no other thread comes to an event before this one
};

}  // namespace blockyard::replay
