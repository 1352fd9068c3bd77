// What the kernel counts for the process and for the machine.
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
  /// Processor time of everything on the machine, including time taken by its host, in the kernel's steps of 10 ms on
  /// most systems (so it may stand still on an idle machine); `unknown` where the kernel does not say.
  std::uint64_t machine_ns = unknown;

  [[nodiscard]] std::uint64_t cpu_ns() const { return user_ns + system_ns; }
  [[nodiscard]] Usage operator-(const Usage& before) const;
};

/// Since the start of the process, and of the machine. Takes about 20 us; allocates nothing.
Usage usage_now();

/// Minor faults and processor time of the process alone: 1 us.
struct Work {
  std::uint64_t minor_faults;
  std::uint64_t cpu_ns;
};
Work work_now();

}  // namespace blockyard::replay
