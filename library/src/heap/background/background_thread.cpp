#include "heap/background/background_thread.hpp"

#include "base/background_work.hpp"
#include "base/pages.hpp"
#include "base/threads.hpp"
#include "checks/report.hpp"
#include "heap/background/maintenance.hpp"
#include "heap/front/thread_heap.hpp"
#include "heap/pages/page_allocator.hpp"
#include "heap/settings.hpp"

namespace blockyard::heap {

namespace {

using Phase = BackgroundPhase;

void run();
bool wake();
void begin_in_child(bool ran, bool was_held_up);
constinit base::BackgroundWork work{{"by-janitor", run, wake, begin_in_child}};

constinit Atomic<std::uint64_t> next_chunk{0};  // ns

constinit thread_local std::uint32_t calls __attribute__((tls_model("initial-exec"))) = 0;  // while there is none

void run() {
  thread_heap = heap_behind_guard = &empty_heap;
  const checks::NoStacks none;
  RoundInterval interval;
  while (settings.janitor != 0 && !work.is_told_to_end()) {
    const std::uint64_t period = settings.period_us * 1000;
    const std::uint64_t pause = interval.next(maintenance.run(period, true), period);
    if (!work.is_told_to_end()) {
      background.pause_for(pause, pause > std::max(RoundInterval::shortest_ns, period));
    }
  }
  // Told to end, it comes back.
  background.set_phase(settings.janitor != 0 && !base::BackgroundWork::is_in_sandbox() ? Phase::due : Phase::absent);
}

// True when it was tried.
bool start_thread() {
  using Start = base::BackgroundWork::Start;
  const auto prepare = [] { return background.move_on(Phase::due, Phase::running); };
  const Start start = work.start(prepare, {&thread_heap, &heap_behind_guard, checks::NoStacks::variable()});
  if (start == Start::refused) {
    background.set_phase(Phase::absent);  // tried again the next time that the reserve runs low
  }
  return start != Start::not_now;
}

bool wake() {
  background.end_sleep();
  return !page_allocator.pages.lock().is_waited_for_by_other() && !maintenance.sweep_lock.is_waited_for_by_other();
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

void begin_in_child(bool, bool was_held_up) {
  background.forget_sleep();
  if (background.phase() != Phase::forbidden && background.phase() != Phase::wanted_early) {
    background.set_phase(Phase::absent);
  }
  if (was_held_up) {
    maintenance.forget_later();
  }
}

}  // namespace

void allow_background_thread() {
  work.allow();
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

}  // namespace blockyard::heap
