// Threads whose stacks are populated before they start.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "replay/run/process_memory.hpp"

namespace blockyard::replay {

/// Creates a thread on `stack`. Returns 0, or why the system refuses.
int create_thread(pthread_t& thread, const Stack& stack, void* (*work)(void*), void* argument);

/// A thread of the lab beside the measured ones. Its stack is populated when constructed.
class LabThread {
 public:
  LabThread();
  ~LabThread() { join(); }
  LabThread(const LabThread&) = delete;
  LabThread& operator=(const LabThread&) = delete;

  /// `work` runs with the lowest priority that still makes progress (SCHED_BATCH, nice 19): it never preempts a
  /// measured thread. Throws journal::Error when the system refuses.
  void start(void (*work)(void*), void* argument);
  /// Waits for the end of `work`. Does nothing when it was not started or has been joined.
  void join();
  /// CPU time so far; 0 when it is not running.
  [[nodiscard]] std::uint64_t cpu_ns() const;

 private:
  static void* run(void* self);

  Stack stack_;
  pthread_t thread_{};
  bool started_ = false;
  void (*work_)(void*) = nullptr;
  void* argument_ = nullptr;
};

}  // namespace blockyard::replay
