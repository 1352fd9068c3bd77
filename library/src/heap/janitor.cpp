#include "heap/janitor.hpp"
#include "heap/atomic.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>

#include "heap/maintenance.hpp"
#include "heap/process_heap.hpp"
#include "heap/settings.hpp"

namespace blockyard::heap {

constinit Atomic<JanitorPhase> janitor_phase{JanitorPhase::forbidden};

namespace {

using Phase = JanitorPhase;
constinit Atomic<Phase>& phase = janitor_phase;

constinit Atomic<std::uint32_t> asleep{0};  // futex word: 1 while the janitor sleeps longer than a round

// A round costs 10 to 35 us, nearly all of it going to sleep and waking up, so it is long where little is taken: such
// that the program takes three eighths of what it may take before it would have to wake the janitor (waking another
// thread is a system call of 3 to 10 us), and at most twice as long as the last. Once it ran the reserve that low, the
// pause is at most the shortest nap, which nobody ends. After a quarter of a second in which nothing was taken the pause
// goes on doubling up to the longest sleep.
constexpr std::uint64_t shortest_nap_ns = 4'000'000;
constexpr std::uint64_t longest_nap_ns = 16'000'000;
constexpr std::uint64_t longest_sleep_ns = 250'000'000;
constexpr std::uint64_t idle_before_sleep_ns = 250'000'000;
constexpr unsigned aim_spent = 6;  // sixteenths
constexpr unsigned all_spent = 16;

void sleep_up_to(std::uint64_t ns, bool wakeable) {
  const timespec pause{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  if (!wakeable) {
    nanosleep(&pause, nullptr);
    return;
  }
  asleep.store(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &asleep, FUTEX_WAIT_PRIVATE, 1, &pause, nullptr, 0);
  asleep.store(0, std::memory_order_relaxed);
}

void* run(void*) {
  // As a batch thread it never preempts the thread that wakes it, in the middle of that thread's allocation.
  const sched_param none{};
  pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
  std::uint64_t pause = 0;
  std::uint64_t idle_ns = 0;
  while (settings.janitor) {
    const std::uint64_t period = std::uint64_t{settings.period_us} * 1000;
    const bool more_to_do = maintenance.run(period);
    const std::uint64_t taken = process_heap.demand.taken_lately();
    idle_ns = more_to_do || taken != 0 ? 0 : idle_ns + pause;
    const std::uint64_t longest = idle_ns < idle_before_sleep_ns ? longest_nap_ns : longest_sleep_ns;
    const unsigned spent = process_heap.demand.spent();
    std::uint64_t next = std::min(pause * 2, pause * aim_spent / std::max(spent, 1u));
    if (spent >= all_spent) {
      next = std::min(next, shortest_nap_ns);
    }
    pause = more_to_do ? period : std::clamp(next, period, std::max(longest, period));
    sleep_up_to(pause, pause > std::max(shortest_nap_ns, period));
  }
  phase.store(Phase::absent, std::memory_order_relaxed);
  return nullptr;
}

}  // namespace

void allow_janitor() {
  Phase seen = phase.load(std::memory_order_relaxed);
  while (seen == Phase::forbidden || seen == Phase::wanted_early) {
    const Phase next = seen == Phase::forbidden ? Phase::absent : Phase::due;
    if (phase.compare_exchange_weak(seen, next, std::memory_order_relaxed)) {
      return;
    }
  }
}

void wake_janitor() {
  if (phase.load(std::memory_order_relaxed) == Phase::running) [[likely]] {
    if (asleep.load(std::memory_order_relaxed) != 0 && asleep.exchange(0, std::memory_order_relaxed) != 0) {
      const int saved = errno;
      syscall(SYS_futex, &asleep, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
      errno = saved;
    }
  } else {
    want_janitor();
  }
}

void want_janitor() {
  Phase seen = phase.load(std::memory_order_relaxed);
  if (seen == Phase::absent && settings.janitor) {
    phase.compare_exchange_strong(seen, Phase::due, std::memory_order_relaxed);
  } else if (seen == Phase::forbidden && settings.janitor) {
    phase.compare_exchange_strong(seen, Phase::wanted_early, std::memory_order_relaxed);
  }
}

void start_janitor() {
  Phase expected = Phase::due;
  if (!phase.compare_exchange_strong(expected, Phase::running, std::memory_order_relaxed)) {
    return;
  }
  const int saved = errno;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, std::size_t{64} << 10);
  // The program's signals are not the janitor's to take.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, run, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error == 0) {
    pthread_setname_np(thread, "by-janitor");
  } else {
    phase.store(Phase::absent, std::memory_order_relaxed);  // tried again the next time that the reserve runs low
  }
  errno = saved;
}

void forget_janitor() {
  asleep.store(0, std::memory_order_relaxed);
  if (phase.load(std::memory_order_relaxed) == Phase::running) {
    phase.store(Phase::absent, std::memory_order_relaxed);
  }
}

}  // namespace blockyard::heap
