// Keeps the machine's cores from falling asleep between two events.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace blockyard::replay {

/// Runs one process on each core that this process may use. It spins in the kernel's class for idle work (SCHED_IDLE):
/// every other thread takes precedence, but the core never sleeps, and a virtual machine never gives it back to its
/// host. These are processes because a thread would keep the allocator's address space active on its core, and every
/// munmap would have to interrupt it. They end with this object, and when the process that started them dies.
class KeepAwake {
 public:
  KeepAwake() = default;
  KeepAwake(const KeepAwake&) = delete;
  KeepAwake& operator=(const KeepAwake&) = delete;
  ~KeepAwake();

  /// Forks: call it once, before there are threads and before there is memory to share. Throws journal::Error when the
  /// system refuses.
  void start();

  /// Processor time that they have used; 0 when there are none. One system call per core.
  [[nodiscard]] std::uint64_t cpu_ns() const;

 private:
  std::vector<pid_t> processes_;
};

}  // namespace blockyard::replay
