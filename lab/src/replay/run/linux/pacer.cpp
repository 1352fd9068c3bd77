#include "replay/run/pacer.hpp"

#include <sys/prctl.h>

#include <cerrno>
#include <ctime>

namespace blockyard::replay {

void sleep_towards(std::uint64_t due, std::uint64_t lead, double ticks_per_ns) {
  // The kernel's clock comes first: if the thread is preempted between the two, it wakes early and spins, and is never
  // late. It is read for each sleep, because this clock is slewed and the cycle clock is not.
  timespec until{};
  clock_gettime(CLOCK_MONOTONIC, &until);
  const std::uint64_t now = clock::ticks();
  if (now + lead >= due) return;
  const auto ns = static_cast<std::uint64_t>(static_cast<double>(due - lead - now) / ticks_per_ns);
  const std::uint64_t sum = static_cast<std::uint64_t>(until.tv_nsec) + ns;
  until.tv_sec += static_cast<time_t>(sum / 1'000'000'000);
  until.tv_nsec = static_cast<long>(sum % 1'000'000'000);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

void sleep_shortly() {
  const timespec time{0, 50'000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

void sleep_precisely() { prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }

}  // namespace blockyard::replay
