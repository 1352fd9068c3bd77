#include "heap/janitor.hpp"

#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include <cerrno>
#include <cstddef>

#include "base/pages.hpp"
#include "base/threads.hpp"
#include "heap/region.hpp"
#include "heap/settings.hpp"

namespace blockyard::heap {

constinit Atomic<JanitorPhase> janitor_phase{JanitorPhase::forbidden};

namespace {

using Phase = JanitorPhase;

using RunRound = Round (*)(std::uint64_t budget_ns);
constinit RunRound run_round = nullptr;
using GiveBack = bool (*)();
constinit GiveBack give_back_chunk = nullptr;
constinit Atomic<std::uint32_t> asleep{0};  // 1 while the janitor sleeps longer than a short nap, and may be woken

// Both by the futex that locks need: a program in a sandbox may allow itself no call that only sleeps.
void sleep_up_to(std::uint64_t ns, bool wakeable) {
  const std::uint32_t value = wakeable ? 1 : 0;
  asleep.store(value, std::memory_order_seq_cst);
  base::sleep_while(&asleep, value, ns);
  asleep.store(0, std::memory_order_relaxed);
}

// The C library puts each thread's static TLS into its stack, that of all libraries loaded at the start.
std::size_t stack_bytes() {
  constexpr std::size_t own = std::size_t{64} << 10;
  std::size_t tls = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* sum) {
        for (int index = 0; index < info->dlpi_phnum; ++index) {
          const auto& segment = info->dlpi_phdr[index];
          if (segment.p_type == PT_TLS) {
            *static_cast<std::size_t*>(sum) += segment.p_memsz + segment.p_align;
          }
        }
        return 0;
      },
      &tls);
  return (own + tls + page_bytes - 1) & ~(page_bytes - 1);
}

void* run(void*) {
  // As a batch thread it never preempts the thread that wakes it, in the middle of that thread's allocation.
  const sched_param none{};
  pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
  prctl(PR_SET_NAME, "by-janitor");
  Naps naps;
  while (settings.janitor != 0) {
    const std::uint64_t period = settings.period_us * 1000;
    const std::uint64_t pause = naps.next(run_round(period), period);
    sleep_up_to(pause, pause > std::max(Naps::shortest_nap_ns, period));
  }
  janitor_phase.store(Phase::absent, std::memory_order_relaxed);
  return nullptr;
}

}  // namespace

void allow_janitor(Round (*round)(std::uint64_t budget_ns), bool (*give_back_a_chunk)()) {
  run_round = round;
  give_back_chunk = give_back_a_chunk;
  Phase seen = janitor_phase.load(std::memory_order_relaxed);
  while (seen == Phase::forbidden || seen == Phase::wanted_early) {
    const Phase next = seen == Phase::forbidden ? Phase::absent : Phase::due;
    if (janitor_phase.compare_exchange_weak(seen, next, std::memory_order_relaxed)) {
      return;
    }
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
  if (program_does_janitors_work()) {
    return;  // asked again once there is a second thread
  }
  Phase seen = janitor_phase.load(std::memory_order_relaxed);
  if (seen == Phase::absent) {
    janitor_phase.compare_exchange_strong(seen, Phase::due, std::memory_order_relaxed);
  } else if (seen == Phase::forbidden) {
    janitor_phase.compare_exchange_strong(seen, Phase::wanted_early, std::memory_order_relaxed);
  }
}

void give_back_without_janitor() {
  // Of one thread: nobody else is here.
  static constinit std::uint32_t calls = 0;
  static constinit std::uint64_t due = 0;      // ns
  constexpr std::uint32_t calls_a_clock = 16;  // so that reading the clock is next to nothing of what they cost
  if (settings.janitor == 0 || !base::is_only_thread() || ++calls % calls_a_clock != 0) {
    return;
  }
  if (const std::uint64_t now = base::monotonic_ns(); now >= due) {
    due = now + 16'000'000;
    if (give_back_chunk()) {
      due = now + 1'000'000;
    }
  }
}

void start_janitor() {
  Phase expected = Phase::due;
  if (!janitor_phase.compare_exchange_strong(expected, Phase::running, std::memory_order_relaxed)) {
    return;
  }
  const int saved = errno;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, stack_bytes());
  // The program's signals are not the janitor's to take, but that of a sandbox: blocked, it would end the program.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigdelset(&all, SIGSYS);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, run, nullptr) != 0) {
    // Tried again the next time that the reserve runs low.
    janitor_phase.store(Phase::absent, std::memory_order_relaxed);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  errno = saved;
}

void forget_janitor() {
  asleep.store(0, std::memory_order_relaxed);
  if (janitor_phase.load(std::memory_order_relaxed) == Phase::running) {
    janitor_phase.store(Phase::absent, std::memory_order_relaxed);
  }
}

}  // namespace blockyard::heap
