// What the kernel counted for the process, and for the machine around it, between two moments.
#pragma once

#include <cstdint>

namespace blockyard::replay {

struct Usage {
  std::uint64_t user_ns = 0;
  std::uint64_t system_ns = 0;
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  std::uint64_t voluntary_switches = 0;
  std::uint64_t involuntary_switches = 0;
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};
  /// Processor time of everything on the machine, time taken by its host included, in the kernel's steps (10 ms mostly:
  /// nothing may have passed on an idle machine); `unknown` where the kernel does not tell.
  std::uint64_t machine_ns = unknown;

  [[nodiscard]] std::uint64_t cpu_ns() const { return user_ns + system_ns; }
  [[nodiscard]] Usage operator-(const Usage& before) const;
};

/// Of the process since its start, and of the machine since its own. About 20 us; allocates nothing. The machine's time
/// comes in steps of 10 ms.
Usage usage_now();

/// Minor faults and processor time of the process alone: 1 us.
struct Work {
  std::uint64_t minor_faults;
  std::uint64_t cpu_ns;
};
Work work_now();

}  // namespace blockyard::replay
