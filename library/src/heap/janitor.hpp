// The one background thread. It populates memory before it is wanted and gives back what nobody wants any more; what
// exactly, the function says that it is given to run.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/threads.hpp"
#include "heap/atomic.hpp"
#include "heap/naps.hpp"
#include "heap/settings.hpp"

namespace blockyard::heap {

enum class JanitorPhase : std::uint32_t { forbidden, wanted_early, absent, due, running };
extern constinit Atomic<JanitorPhase> janitor_phase;

/// Whether the program does the janitor's work itself: it is switched off, or the program has one thread and did not
/// ask for another. A second thread would change what the C library does: fork in a signal handler then takes locks.
inline bool program_does_janitors_work() {
  return settings.janitor == 0 || (!settings.janitor_asked_for && base::is_only_thread());
}

/// Called by a thread that saw the reserve run low. Starts the janitor when there is none yet, wakes it when it sleeps
/// long. Cheap otherwise: two loads.
void wake_janitor();

/// As wake_janitor, but lets it sleep where there is one: for what can wait until it comes by itself.
void want_janitor();

void start_janitor();
/// Called where starting a thread is safe: on the slow path of an allocation before it has touched anything, without a
/// lock. Starting one allocates. True when it was tried.
inline bool start_janitor_if_due() {
  if (janitor_phase.load(std::memory_order_relaxed) != JanitorPhase::due) [[likely]] {
    return false;
  }
  start_janitor();
  return true;
}

/// Gives memory back, a chunk at most each 16 ms, where a program with one thread has no janitor for that. Called where
/// a run of pages was taken or given, without a lock.
void give_back_without_janitor();
inline void give_back_if_due() {
  if (janitor_phase.load(std::memory_order_relaxed) == JanitorPhase::absent) [[unlikely]] {
    give_back_without_janitor();
  }
}

/// The fork handlers' part: in the child there is no janitor until it is wanted again.
void forget_janitor();

/// From here on a janitor may be started, which calls `round` with the nanoseconds it may take, again and again: the C
/// library is ready for threads. Where there is none, `give_back` gives up to a chunk back, and says whether there is
/// more. Once a process.
void allow_janitor(Round (*round)(std::uint64_t budget_ns), bool (*give_back)());

}  // namespace blockyard::heap
