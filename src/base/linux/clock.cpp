// Calibrates the cycle clock against CLOCK_MONOTONIC_RAW, which no time daemon slews.
#include "base/clock.hpp"

#include <ctime>

namespace blockyard::base {
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

// A preemption between the two clocks would shift the pair: of several readings keep the one whose ticks span is least.
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
  static const double value = calibrate_ticks_per_ns(100);
  return value;
}

}  // namespace blockyard::base
