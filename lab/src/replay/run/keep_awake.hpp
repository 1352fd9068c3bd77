// Keeps the machine's cores from falling asleep between two events.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace blockyard::replay {

/// One process for each core that this one may use. It does nothing, of the kernel's class for idle work (SCHED_IDLE):
/// whoever wants to run goes before it, but the core has not slept, and on a virtual machine has not been given back to
/// its host. Processes and not threads: a thread would have the allocator's address space active on its core, so that
/// every munmap had to interrupt it. They end with this object, and when the process that made them dies.
class KeepAwake {
 public:
  KeepAwake() = default;
  KeepAwake(const KeepAwake&) = delete;
  KeepAwake& operator=(const KeepAwake&) = delete;
  ~KeepAwake();

  /// Forks: before there are threads, and before there is memory to share. Call it once. Throws journal::Error when the
  /// system refuses.
  void start();

  /// Processor time that they have taken; 0 where there are none. One system call a core.
  [[nodiscard]] std::uint64_t cpu_ns() const;

 private:
  std::vector<pid_t> processes_;
};

}  // namespace blockyard::replay
