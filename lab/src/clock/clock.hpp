// The cycle clock: one count for all cores at a constant rate, read in a few nanoseconds.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace blockyard::clock {

/// Ticks now, not ordered: the read may move past neighbouring instructions. For paces and deadlines. About 8 ns.
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

/// Ticks when all instructions before have finished and none after has begun, so that two of them enclose exactly the
/// measured call. About 14 ns.
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

/// Ticks when all instructions before have finished, loads included; those after may have begun. For the end of a
/// measured call. About 14 ns.
inline std::uint64_t ticks_after() {
#if defined(__x86_64__)
  _mm_lfence();
  return __rdtsc();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
  return ticks();
#endif
}

/// Whether the cycle clock runs at one rate in every power state and on every processor, and the kernel trusts it.
/// Reads a file; call it at start-up.
bool ticks_are_invariant();

/// Ticks per nanosecond, to 6 digits, measured once per process against CLOCK_MONOTONIC_RAW (a virtual machine's CPUID
/// does not have it). The first call takes 25 ms. Thread-safe.
double ticks_per_ns();

/// The same, measured now over `milliseconds`. Shorter is coarser: 10 ms gives 4 to 5 digits.
double calibrate_ticks_per_ns(unsigned milliseconds);

}  // namespace blockyard::clock
