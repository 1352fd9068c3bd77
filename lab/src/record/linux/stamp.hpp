// Stamps: the one clock that orders the events of all threads.
#pragma once

#include <cstdint>
#include <ctime>

#include "clock/clock.hpp"
#include "record/channel.hpp"

namespace blockyard::record {

inline std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

/// A stamp not later than the moment at which anything that follows in program order becomes visible to other threads.
/// Stores become visible when they retire, in order, so reading the counter needs no fence.
inline std::uint64_t stamp_before(StampClock clock) {
  if (__builtin_expect(clock != StampClock::cycles, 0)) return monotonic_ns();
  return clock::ticks();
}

/// A stamp not earlier than anything before it in program order, loads included.
inline std::uint64_t stamp_after(StampClock clock) {
  if (__builtin_expect(clock != StampClock::cycles, 0)) return monotonic_ns();
  return clock::ticks_after();
}

/// Makes what this thread stored visible to all before a stamp that follows is read. These are instructions because the
/// language's fence orders memory but not counters (and ThreadSanitizer refuses it).
inline void fence_before_stamp() {
#if defined(__x86_64__)
  asm volatile("mfence\n\tlfence" ::: "memory");
#elif defined(__aarch64__)
  asm volatile("dmb ish\n\tisb" ::: "memory");
#endif
}

}  // namespace blockyard::record
