// The cycle clock: invariant, one count for all cores, read in a few nanoseconds.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace blockyard::base {

/// Ticks now, unordered: the read may move past neighbouring instructions. For paces and deadlines. About 8 ns.
inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
#error "no cycle clock known for this processor"
#endif
}

/// Ticks with everything before finished and nothing after begun: two of them enclose just the measured call. About 14
/// ns.
inline std::uint64_t ticks_fenced() {
#if defined(__x86_64__)
  _mm_lfence();
  const std::uint64_t value = __rdtsc();
  _mm_lfence();
  return value;
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
  const std::uint64_t value = ticks();
  asm volatile("isb" ::: "memory");
  return value;
#endif
}

/// Ticks with everything before finished, loads included, but what follows may begin: the end of a measured or stamped
/// call. About 14 ns.
inline std::uint64_t ticks_after() {
#if defined(__x86_64__)
  _mm_lfence();
  return __rdtsc();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
  return ticks();
#endif
}

/// Whether the cycle clock is one clock: it runs at one rate in every power state and on every processor, and the
/// kernel trusts it as such. Reads a file; for start-up.
bool ticks_are_invariant();

/// Ticks a nanosecond, measured once per process against CLOCK_MONOTONIC_RAW over about 100 ms (a virtual machine's
/// CPUID does not tell); 6 digits. The first call blocks for that long; thread-safe.
double ticks_per_ns();

/// The same over `milliseconds`, measured anew: shorter is coarser (10 ms gives 4 to 5 digits).
double calibrate_ticks_per_ns(unsigned milliseconds);

}  // namespace blockyard::base
