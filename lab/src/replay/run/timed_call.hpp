// Two clock reads around one call, and what they measure when there is nothing between them.
#pragma once

#include <cstdint>
#include <mutex>

#include "clock/clock.hpp"

namespace blockyard::replay {

/// Ticks of the cycle clock.
struct Span {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Ticks as a record holds them: the largest value means at least that.
constexpr std::uint32_t saturated(std::uint64_t ticks) {
  return ticks > 0xffff'ffffu ? 0xffff'ffffu : static_cast<std::uint32_t>(ticks);
}

/// Keeps the value in a register from here on: the compiler can move neither its computation nor its load into a timed
/// region.
template <typename T>
[[gnu::always_inline]] inline void settle(T& value) {
  asm volatile("" : "+r"(value));
}

/// Calls `call` between two clock reads. Where the allocator needs a lock, the wait for it is part of the call.
template <bool timed, bool locked, typename Call>
[[gnu::always_inline]] inline void measure(Span& span, std::mutex& lock, Call call) {
  if constexpr (timed) span.begin = clock::ticks_fenced();
  if constexpr (locked) lock.lock();
  call();
  if constexpr (locked) lock.unlock();
  if constexpr (timed) span.end = clock::ticks_fenced();
}

/// What the measured loop's own code costs.
struct Floors {
  std::uint32_t call = 0;   ///< ticks of an empty timed region, median of 20,001
  std::uint32_t touch = 0;  ///< ticks of an empty touch after it, likewise
  std::uint32_t step = 0;   ///< all of them are multiples of so many ticks: 1, or more where the clock counts coarsely
};
Floors measure_floors();

}  // namespace blockyard::replay
