// A thread of the library's own, of which the C library does not know.
//
// To the C library a program with one thread stays one: it goes on without locks, fork may be called in a signal
// handler, and the process ends with its last thread. Starting it calls nothing of the C library's that locks,
// allocates, or may be another's: it may be started in the middle of an allocation.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>

namespace blockyard::base {

class BackgroundThread {
 public:
  constexpr BackgroundThread() = default;
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  /// Starts it, on all cores that the process began with, in the batch class, without signals but that of a sandbox.
  /// False: the system refuses, or the one before is not over. Its thread-local variables begin as zeros; it may use
  /// errno and `variables`, addresses of the calling thread's. It has a stack of 64 KiB, and must not call what takes a
  /// lock of the C library's, needs a locale, or allocates. One thread at a time; keeps errno.
  bool start(void (*run)(), const char* name, std::initializer_list<const void*> variables);

  /// Whether it has left `run`, or was never started.
  bool is_over() const { return alive_.load(std::memory_order_acquire) == 0; }
  /// Whether the system does not count it any more either. A system call.
  bool is_gone();
  /// In a forked child, where it is gone.
  void forget() { alive_.store(0, std::memory_order_relaxed); }

 private:
  void (*run_)() = nullptr;
  const char* name_ = nullptr;
  std::atomic<std::uint32_t> alive_{0};
  std::atomic<int> thread_{0};               // the system's number of the last one, until that is gone
  [[maybe_unused]] char* memory_ = nullptr;  // kept for the next
  [[maybe_unused]] std::uintptr_t pointer_ = 0;
};

/// While it lives, no signal handler runs on this thread, but that of a sandbox. Keeps errno.
class NoSignals {
 public:
  NoSignals();
  ~NoSignals();
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  std::uint64_t before_ = 0;
};

}  // namespace blockyard::base
