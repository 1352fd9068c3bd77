#include "heap/background/background_thread.hpp"

#include "base/background_thread.hpp"
#include "base/pages.hpp"
#include "base/process.hpp"
#include "base/threads.hpp"
#include "checks/report.hpp"
#include "heap/background/maintenance.hpp"
#include "heap/front/thread_heap.hpp"
#include "heap/pages/page_allocator.hpp"
#include "heap/settings.hpp"

namespace blockyard::heap {

namespace {

using Phase = BackgroundPhase;

constinit base::BackgroundThread thread;
constinit Atomic<bool> told_to_end{false};
constinit Atomic<int> held_off{0};              // calls for which there must be none
constinit Atomic<bool> was_left{false};         // a fork could not wait for its end
constinit Atomic<int> process{0};               // whose thread it is
constinit Atomic<std::uint64_t> due_from{0};    // ns
constinit Atomic<std::uint64_t> next_chunk{0};  // ns

constinit thread_local std::uint32_t calls __attribute__((tls_model("initial-exec"))) = 0;  // while there is none

void run() {
  thread_heap = heap_behind_guard = &empty_heap;
  checks::says_no_stack = true;
  RoundInterval interval;
  while (settings.janitor != 0 && !told_to_end.load(std::memory_order_relaxed)) {
    const std::uint64_t period = settings.period_us * 1000;
    const std::uint64_t pause = interval.next(maintenance.run(period, true), period);
    if (!told_to_end.load(std::memory_order_relaxed)) {
      background.pause_for(pause, pause > std::max(RoundInterval::shortest_ns, period));
    }
  }
  background.set_phase(Phase::absent);
}

// True when it was tried.
bool start_thread() {
  if (const std::uint64_t from = due_from.load(std::memory_order_relaxed); from != 0 && base::monotonic_ns() < from) {
    return false;
  }
  // A handler may fork, and would wait for what it interrupted.
  const base::NoSignals none;
  if (!background.move_on(Phase::due, Phase::starting)) {
    return false;
  }
  // A vfork child's would end with it, and the parent would have none.
  if (held_off.load(std::memory_order_seq_cst) != 0 || !thread.is_over() ||
      base::process_id() != process.load(std::memory_order_relaxed)) {
    background.move_on(Phase::starting, Phase::due);
    return false;
  }
  due_from.store(0, std::memory_order_relaxed);
  told_to_end.store(false, std::memory_order_relaxed);
  // Where the system refuses, tried again the next time that the reserve runs low.
  const bool started = thread.start(run, "by-janitor", {&thread_heap, &heap_behind_guard, &checks::says_no_stack});
  background.move_on(Phase::starting, started ? Phase::running : Phase::absent);
  return true;
}

void give_back_in_its_place() {
  constexpr std::uint32_t calls_a_clock = 64;  // so that reading the clock is next to nothing of what they cost
  if (settings.janitor == 0 || ++calls % calls_a_clock != 0) {
    return;
  }
  if (const std::uint64_t now = base::monotonic_ns(); now >= next_chunk.load(std::memory_order_relaxed)) {
    next_chunk.store(now + tick_ms * 1'000'000, std::memory_order_relaxed);
    if (maintenance.give_back_a_chunk()) {
      next_chunk.store(now + 1'000'000, std::memory_order_relaxed);
    }
  }
}

// Others than it and the caller may be there, whose own number the system counts.
bool is_fork_alone() { return base::is_only_thread() || base::threads_of_process() == 2; }

// Whether it was ended for the fork that is under way; one at a time, under the C library's lock, or on the
// only thread.
constinit bool ended_for_fork = false;

void end_for_fork() {
  const Phase phase = background.phase();
  ended_for_fork = (phase == Phase::running || phase == Phase::starting) && is_fork_alone() && end_background_thread();
}

void return_after_fork() {
  if (ended_for_fork) {
    resume_background_thread();
  }
}

void begin_in_child() {
  process.store(base::process_id(), std::memory_order_relaxed);
  held_off.store(0, std::memory_order_relaxed);
  background.forget_sleep();
  thread.forget();
  const Phase phase = background.phase();
  if (phase == Phase::running || phase == Phase::starting) {
    background.set_phase(Phase::absent);
  }
  if (was_left.exchange(false, std::memory_order_relaxed)) {
    maintenance.forget_later();
  }
}

}  // namespace

void allow_background_thread() {
  process.store(base::process_id(), std::memory_order_relaxed);
  base::around_every_fork(end_for_fork, return_after_fork, begin_in_child);
  if (!background.move_on(Phase::forbidden, Phase::absent)) {
    background.move_on(Phase::wanted_early, Phase::due);
  }
}

bool do_background_work() {
  const Phase phase = background.phase();
  if (phase == Phase::due && start_thread()) {
    return true;
  }
  if (phase == Phase::due || phase == Phase::absent) {
    give_back_in_its_place();
  }
  return false;
}

bool end_background_thread() {
  constexpr std::uint64_t step_ns = 20'000;
  constexpr int most_steps = 50'000;  // a second: then it is left where it is
  constexpr std::uint32_t nobody_wakes = 0;
  if (base::process_id() != process.load(std::memory_order_relaxed)) {
    return false;
  }
  held_off.fetch_add(1, std::memory_order_seq_cst);
  while (background.phase() == Phase::starting) {
    base::yield_thread();
  }
  const bool alone = is_fork_alone();
  for (int step = 0; step < most_steps && !thread.is_gone(); ++step) {
    told_to_end.store(true, std::memory_order_relaxed);
    background.end_sleep();
    // In a signal handler that interrupted who holds a lock: the background thread waits for this one.
    if (alone &&
        (page_allocator.pages.lock().is_waited_for_by_other() || maintenance.sweep_lock.is_waited_for_by_other())) {
      break;
    }
    base::sleep_while(&nobody_wakes, nobody_wakes, step_ns);
  }
  if (!thread.is_gone()) {
    was_left.store(true, std::memory_order_relaxed);
  }
  return true;
}

void resume_background_thread() {
  constexpr std::uint64_t away_ns = 20'000'000;
  was_left.store(false, std::memory_order_relaxed);
  if (told_to_end.load(std::memory_order_relaxed)) {
    due_from.store(base::monotonic_ns() + away_ns, std::memory_order_relaxed);
    background.request();
  }
  held_off.fetch_sub(1, std::memory_order_seq_cst);
}

void enter_sandbox() {
  background.enter_sandbox();
  if (base::is_only_thread() && end_background_thread()) {
    resume_background_thread();
  }
}

}  // namespace blockyard::heap
