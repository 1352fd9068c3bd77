// The one background thread. It populates memory before it is wanted and gives back what nobody wants any more; what
// exactly, the function says that it is given to run.
//
// It starts by memory, not by the program's threads: where what stands ready runs low, which is nothing in a small
// program, or where memory was freed in one that is not small. The C library does not know it (background_thread.hpp).
// Where the number of threads matters all the same, as for a fork, or what a thread may do, it stands aside. While it
// is not there, the program's threads give memory back themselves, a chunk at a time.
#pragma once

#include <atomic>
#include <cstdint>

#include "heap/atomic.hpp"
#include "heap/background/pause.hpp"
#include "heap/settings.hpp"

namespace blockyard::heap {

enum class JanitorPhase : std::uint32_t { running, forbidden, wanted_early, absent, due, starting };
extern constinit Atomic<JanitorPhase> janitor_phase;

/// Called by a thread that saw the reserve run low. Has the janitor started when there is none, wakes it when it sleeps
/// long. Cheap otherwise: two loads.
void wake_janitor();

/// As wake_janitor, but lets it sleep where there is one: for what can wait until it comes by itself.
void want_janitor();

/// Called on the slow path of an allocation or a free, without a lock: starts the janitor where that is due, else gives
/// memory back in its place, a chunk at most each 16 ms. True when it was tried to start it.
bool do_without_janitor();
inline bool look_after_janitor() {
  return janitor_phase.load(std::memory_order_relaxed) != JanitorPhase::running && do_without_janitor();
}

/// From here to janitor_may_return() the process has no janitor, and the system counts none of its threads. False, and
/// nothing is to be returned from: the caller is a vfork child, whose janitor it is not. A millisecond at most, or the
/// rest of its round; async-signal-safe.
bool janitor_stands_aside();
/// It comes back a few milliseconds later, where it was needed before.
void janitor_may_return();

/// The program is about to forbid itself system calls: from now on no janitor starts or reads files, and where the
/// program has one thread, to which alone the sandbox would apply, the one that runs ends.
void janitor_in_sandbox();
bool is_in_sandbox();

/// From here on a janitor may be started, which calls `round` with the nanoseconds it may take, again and again. Where
/// there is none, `give_back` gives up to a chunk back, and says whether there is more. `is_waited_for`: whether some
/// thread waits for a lock that a round takes; `forget` gives up in a forked child what the parent's janitor was at.
/// Once a process.
struct JanitorsWork {
  Round (*round)(std::uint64_t budget_ns);
  bool (*give_back)();
  bool (*is_waited_for)();
  void (*forget)();
};
void allow_janitor(const JanitorsWork& work);

}  // namespace blockyard::heap
