// The kernel's clocks in nanoseconds.
#pragma once

#include <cstdint>
#include <ctime>

namespace blockyard::replay {

inline std::uint64_t ns_of(const timespec& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

/// 0 when there is no such clock (any more).
inline std::uint64_t clock_ns(clockid_t clock) {
  timespec time{};
  return clock_gettime(clock, &time) == 0 ? ns_of(time) : 0;
}

}  // namespace blockyard::replay
