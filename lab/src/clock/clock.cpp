// Calibrates the cycle clock against CLOCK_MONOTONIC_RAW, which no time daemon slews.
#include "clock/clock.hpp"

#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace blockyard::clock {
namespace {

struct Reading {
  std::uint64_t ticks;
  std::uint64_t ns;
};

std::uint64_t monotonic_raw_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

// Of several readings, keeps the one with the shortest span of ticks: a preemption between the two clocks shifts a
// pair.
Reading read_pair() {
  Reading best{};
  std::uint64_t best_span = ~std::uint64_t{0};
  for (int attempt = 0; attempt < 16; ++attempt) {
    const std::uint64_t before = ticks_fenced();
    const std::uint64_t ns = monotonic_raw_ns();
    const std::uint64_t after = ticks_fenced();
    if (after - before < best_span) {
      best_span = after - before;
      best = {before + (after - before) / 2, ns};
    }
  }
  return best;
}

}  // namespace

bool ticks_are_invariant() {
#if defined(__x86_64__)
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  constexpr unsigned advanced_power_leaf = 0x80000007;
  constexpr unsigned invariant_bit = 1u << 8;
  const bool promised = __get_cpuid(advanced_power_leaf, &eax, &ebx, &ecx, &edx) != 0 && (edx & invariant_bit) != 0;
  // The kernel compares the processors' counters and takes another source (hpet, acpi_pm) when they disagree.
  char source[32] = {};
  const int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  if (file >= 0) {
    const ssize_t got = read(file, source, sizeof source - 1);
    close(file);
    if (got > 0) {
      const bool trusted = std::strncmp(source, "tsc", 3) == 0;
      // A guest's paravirtual clock is built on the counter, so it does not contradict the processor's promise.
      const bool guest = std::strncmp(source, "kvm-clock", 9) == 0 || std::strncmp(source, "hyperv", 6) == 0;
      return trusted || (guest && promised);
    }
  }
  return promised;
#else
  return true;  // the architecture's generic timer is one counter by definition
#endif
}

double calibrate_ticks_per_ns(unsigned milliseconds) {
  const Reading start = read_pair();
  const timespec pause{static_cast<time_t>(milliseconds / 1000), static_cast<long>(milliseconds % 1000) * 1'000'000};
  timespec left = pause;
  while (nanosleep(&left, &left) != 0) {
  }
  const Reading end = read_pair();
  return static_cast<double>(end.ticks - start.ticks) / static_cast<double>(end.ns - start.ns);
}

double ticks_per_ns() {
  static const double value = calibrate_ticks_per_ns(25);
  return value;
}

}  // namespace blockyard::clock
