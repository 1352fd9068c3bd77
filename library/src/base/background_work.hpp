// The background threads of a process: when they start, and what ends them for a while.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "base/atomic.hpp"
#include "base/background_thread.hpp"
#include "base/threads.hpp"

namespace blockyard::base {

/// The work of one background thread, which ends for what a process with two threads can't do: a fork of a program with
/// one thread, and what end_all() is called for. Then it may be started again.
class BackgroundWork {
 public:
  struct Functions {
    const char* name;  ///< of the thread
    /// Returns soon once is_told_to_end().
    void (*run)();
    /// Ends the sleep of a thread that was told to end. False: it waits for a lock that the calling thread may hold,
    /// which a signal handler interrupted.
    bool (*wake)();
    /// In a forked child: whether it was running at the fork, and could not be ended for it.
    void (*begin_in_child)(bool ran, bool was_held_up);
  };
  enum class Start { not_now, refused, started };

  constexpr explicit BackgroundWork(const Functions& functions) : functions_(functions) {}

  /// From here on it may be started. Once, before main.
  void allow();
  /// Starts it, unless it runs or may not. `prepare` is called right before, by one thread at a time; false: it is not
  /// started. `refused`: the system does; for a quarter of a second none is started.
  Start start(bool (*prepare)(), std::initializer_list<const void*> variables);
  bool is_over() const { return thread_.is_over(); }
  bool is_told_to_end() const { return told_to_end_.load(std::memory_order_relaxed) != 0; }
  /// The thread itself: waits until it is told to end.
  void wait_for_end(std::uint64_t at_most_ns) { sleep_while(&told_to_end_, 0, at_most_ns); }

  /// From here to resume_all() the process has no background thread, and the system counts none. False, and nothing is
  /// to be resumed: the caller is a vfork child, whose threads they are not. A millisecond at most, or the rest of what
  /// they are at; one that is not done in a second is left where it is. Async-signal-safe.
  static bool end_all();
  /// They may be started 20 ms later.
  static void resume_all();

  /// The program is about to forbid itself system calls: from now on none is started, and where the program has one
  /// thread, to which alone the sandbox would apply, those that run end. A vfork child changes nothing of its parent's.
  static void enter_sandbox();
  static bool is_in_sandbox();

 private:
  static unsigned count_running();
  static bool is_alone();
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();

  Functions functions_;
  BackgroundThread thread_;
  Atomic<std::uint32_t> told_to_end_{0};
  Atomic<bool> starting_{false};
  BackgroundWork* next_ = nullptr;
};

}  // namespace blockyard::base
