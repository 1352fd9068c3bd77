// Waits for an event's time: asleep until shortly before it, then spinning.
#pragma once

#include <cstdint>

#include "clock/clock.hpp"
#include "replay/observe/cause_reader.hpp"

namespace blockyard::replay {

/// How long before its event a thread wakes. It is long enough to hide a wake-up (5 to 15 us on an idle core), and
/// short enough that a journal with more threads than cores keeps its pace and an allocator's background thread can
/// run.
inline constexpr double sleep_lead_ns = 20'000;

inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Sleeps until `lead` ticks before `due`; not at all when that is less than half of `lead` away. System calls only.
void sleep_towards(std::uint64_t due, std::uint64_t lead, double ticks_per_ns);

/// Returns at `due`, or at once when it has passed. What happens meanwhile is charged to no event.
inline void wait_until(std::uint64_t due, std::uint64_t lead, double ticks_per_ns, CauseReader& cause_reader) {
  std::uint64_t now = clock::ticks();
  cause_reader.pass(now);
  if (now >= due) return;
  if (due - now > lead + lead / 2) [[unlikely]] {
    sleep_towards(due, lead, ticks_per_ns);
    cause_reader.rebase();
  }
  while ((now = clock::ticks()) < due) {
    cause_reader.pass(now);
    relax();
  }
  cause_reader.pass(now);
}

/// Sleeps about 50 us: for waits of unknown length.
void sleep_shortly();

/// Makes the calling thread's sleeps end on time (the kernel may otherwise add 50 us).
void sleep_precisely();

}  // namespace blockyard::replay
