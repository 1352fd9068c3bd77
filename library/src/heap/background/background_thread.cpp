#include "heap/background/background_thread.hpp"

#include "base/background_thread.hpp"
#include "base/pages.hpp"
#include "base/process.hpp"
#include "base/threads.hpp"
#include "heap/fault.hpp"
#include "heap/front/thread_heap.hpp"
#include "heap/settings.hpp"

namespace blockyard::heap {

constinit Atomic<JanitorPhase> janitor_phase{JanitorPhase::forbidden};

namespace {

using Phase = JanitorPhase;

constinit JanitorsWork work{};
constinit base::BackgroundThread thread;
constinit Atomic<std::uint32_t> asleep{0};  // 1 while the janitor sleeps longer than a short nap, and may be woken
constinit Atomic<bool> told_to_end{false};
constinit Atomic<int> held_off{0};  // calls that it stands aside for
constinit Atomic<bool> in_sandbox{false};
constinit Atomic<bool> was_left{false};         // a fork could not wait for its end
constinit Atomic<int> process{0};               // whose janitor this is
constinit Atomic<std::uint64_t> due_from{0};    // ns
constinit Atomic<std::uint64_t> next_chunk{0};  // ns

constinit thread_local std::uint32_t calls __attribute__((tls_model("initial-exec"))) = 0;  // while there is none

// Both by the futex that locks need: a program in a sandbox may allow itself no call that only sleeps.
void sleep_up_to(std::uint64_t ns, bool wakeable) {
  const std::uint32_t value = wakeable ? 1 : 0;
  asleep.store(value, std::memory_order_seq_cst);
  base::sleep_while(&asleep, value, ns);
  asleep.store(0, std::memory_order_relaxed);
}

void run() {
  thread_heap = heap_behind_guard = &empty_heap;
  says_no_stack = true;
  Naps naps;
  while (settings.janitor != 0 && !told_to_end.load(std::memory_order_relaxed)) {
    const std::uint64_t period = settings.period_us * 1000;
    const std::uint64_t pause = naps.next(work.round(period), period);
    if (!told_to_end.load(std::memory_order_relaxed)) {
      sleep_up_to(pause, pause > std::max(Naps::shortest_nap_ns, period));
    }
  }
  janitor_phase.store(Phase::absent, std::memory_order_relaxed);
}

bool move_on(Phase from, Phase to) {
  return janitor_phase.compare_exchange_strong(from, to, std::memory_order_seq_cst);
}

// True when it was tried.
bool start_janitor() {
  if (const std::uint64_t from = due_from.load(std::memory_order_relaxed); from != 0 && base::monotonic_ns() < from) {
    return false;
  }
  // A handler may fork, and would wait for what it interrupted.
  const base::NoSignals none;
  if (!move_on(Phase::due, Phase::starting)) {
    return false;
  }
  // A vfork child's would end with it, and the parent would have none.
  if (held_off.load(std::memory_order_seq_cst) != 0 || !thread.is_over() ||
      base::process_id() != process.load(std::memory_order_relaxed)) {
    move_on(Phase::starting, Phase::due);
    return false;
  }
  due_from.store(0, std::memory_order_relaxed);
  told_to_end.store(false, std::memory_order_relaxed);
  // Where the system refuses, tried again the next time that the reserve runs low.
  const bool started = thread.start(run, "by-janitor", {&thread_heap, &heap_behind_guard, &says_no_stack});
  move_on(Phase::starting, started ? Phase::running : Phase::absent);
  return true;
}

void give_back_in_its_place() {
  constexpr std::uint32_t calls_a_clock = 64;  // so that reading the clock is next to nothing of what they cost
  if (settings.janitor == 0 || ++calls % calls_a_clock != 0) {
    return;
  }
  if (const std::uint64_t now = base::monotonic_ns(); now >= next_chunk.load(std::memory_order_relaxed)) {
    next_chunk.store(now + 16'000'000, std::memory_order_relaxed);
    if (work.give_back()) {
      next_chunk.store(now + 1'000'000, std::memory_order_relaxed);
    }
  }
}

// Others than the janitor and the caller may be there, whose own number the system counts.
bool is_fork_alone() { return base::is_only_thread() || base::threads_of_process() == 2; }

// Whether the janitor stands aside for the fork that is under way; one at a time, under the C library's lock, or on the
// only thread.
constinit bool aside_for_fork = false;

void end_for_fork() {
  const Phase phase = janitor_phase.load(std::memory_order_relaxed);
  aside_for_fork = (phase == Phase::running || phase == Phase::starting) && is_fork_alone() && janitor_stands_aside();
}

void return_after_fork() {
  if (aside_for_fork) {
    janitor_may_return();
  }
}

void begin_in_child() {
  process.store(base::process_id(), std::memory_order_relaxed);
  held_off.store(0, std::memory_order_relaxed);
  asleep.store(0, std::memory_order_relaxed);
  thread.forget();
  const Phase phase = janitor_phase.load(std::memory_order_relaxed);
  if (phase == Phase::running || phase == Phase::starting) {
    janitor_phase.store(Phase::absent, std::memory_order_relaxed);
  }
  if (was_left.exchange(false, std::memory_order_relaxed)) {
    work.forget();
  }
}

}  // namespace

void allow_janitor(const JanitorsWork& what) {
  work = what;
  process.store(base::process_id(), std::memory_order_relaxed);
  base::note_allowed_cores();
  base::around_every_fork(end_for_fork, return_after_fork, begin_in_child);
  if (!move_on(Phase::forbidden, Phase::absent)) {
    move_on(Phase::wanted_early, Phase::due);
  }
}

void wake_janitor() {
  if (janitor_phase.load(std::memory_order_relaxed) == Phase::running) [[likely]] {
    if (asleep.load(std::memory_order_relaxed) != 0 && asleep.exchange(0, std::memory_order_relaxed) != 0) {
      base::wake_one(&asleep);
    }
  } else {
    want_janitor();
  }
}

void want_janitor() {
  if (settings.janitor != 0 && !is_in_sandbox() && !move_on(Phase::absent, Phase::due)) {
    move_on(Phase::forbidden, Phase::wanted_early);
  }
}

bool do_without_janitor() {
  const Phase phase = janitor_phase.load(std::memory_order_relaxed);
  if (phase == Phase::due && start_janitor()) {
    return true;
  }
  if (phase == Phase::due || phase == Phase::absent) {
    give_back_in_its_place();
  }
  return false;
}

bool janitor_stands_aside() {
  constexpr std::uint64_t step_ns = 20'000;
  constexpr int most_steps = 50'000;  // a second: then it is left where it is
  constexpr std::uint32_t nobody_wakes = 0;
  if (base::process_id() != process.load(std::memory_order_relaxed)) {
    return false;
  }
  held_off.fetch_add(1, std::memory_order_seq_cst);
  while (janitor_phase.load(std::memory_order_seq_cst) == Phase::starting) {
    base::yield_thread();
  }
  const bool alone = is_fork_alone();
  for (int step = 0; step < most_steps && !thread.is_gone(); ++step) {
    told_to_end.store(true, std::memory_order_relaxed);
    asleep.store(0, std::memory_order_relaxed);
    base::wake_one(&asleep);
    // In a signal handler that interrupted who holds a lock: the janitor waits for this thread.
    if (alone && work.is_waited_for()) {
      was_left.store(true, std::memory_order_relaxed);
      break;
    }
    base::sleep_while(&nobody_wakes, nobody_wakes, step_ns);
  }
  return true;
}

void janitor_may_return() {
  constexpr std::uint64_t away_ns = 20'000'000;
  was_left.store(false, std::memory_order_relaxed);
  if (told_to_end.load(std::memory_order_relaxed)) {
    due_from.store(base::monotonic_ns() + away_ns, std::memory_order_relaxed);
    want_janitor();
  }
  held_off.fetch_sub(1, std::memory_order_seq_cst);
}

void janitor_in_sandbox() {
  in_sandbox.store(true, std::memory_order_relaxed);
  if (base::is_only_thread() && janitor_stands_aside()) {
    janitor_may_return();
  }
}

bool is_in_sandbox() { return in_sandbox.load(std::memory_order_relaxed); }

}  // namespace blockyard::heap
