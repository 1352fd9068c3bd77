// Threads of a program, stopped by ptrace.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>
#include <sys/user.h>

#include "record/linux/attach/target.hpp"

namespace blockyard::record::attach {

/// One thread, stopped for as long as this lives.
class Stop {
 public:
  struct Begin {};
  /// Asks the thread to stop and does not wait for it: wait() does.
  Stop(const Target& target, pid_t thread, Begin);
  /// Until the thread has stopped or is gone, or that time has come.
  void wait(std::chrono::steady_clock::time_point until);
  /// Throws journal::Error where the system forbids it. Where the thread is gone, or does not stop soon, as one that
  /// waits for a child made by vfork(), is_stopped() is false.
  Stop(const Target& target, pid_t thread);
  /// Lets the thread run on, where it was or, after call(), in the function.
  ~Stop();
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;

  bool is_stopped() const { return is_stopped_; }
  pid_t thread() const { return thread_; }
  const user_regs_struct& registers() const { return registers_; }

  /// Makes the thread call `function` as soon as it runs, with all signals blocked, on its own stack below its red
  /// zone. When the function returns, the kernel gives the thread back every register and its signal mask, by the
  /// mechanism with which it returns from a signal handler: `return_from_signal` is the address of that system call in
  /// libc. A system call that was interrupted is begun anew. So nothing is left to do for this process, which may end
  /// meanwhile. `text` goes to the stack; its address is the first argument. Returns why that can't be, or "".
  std::string call(std::uint64_t function, const std::string& text, std::uint64_t second,
                   std::uint64_t return_from_signal);

 private:
  bool is_idle_in_rseq() const;
  void resume_interrupted();
  std::vector<std::byte> extended_registers() const;

  const Target& target_;
  pid_t thread_;
  bool is_stopped_ = false;
  bool is_attached_ = false;
  user_regs_struct registers_{};
};

/// All threads of a program, stopped for as long as this lives.
class AllStopped {
 public:
  /// Where one does not stop until then, is_complete() is false.
  AllStopped(const Target& target, std::chrono::steady_clock::time_point until);
  bool is_complete() const { return is_complete_; }

 private:
  std::vector<std::unique_ptr<Stop>> stops_;
  bool is_complete_ = false;
};

/// The mask of blocked signals that a called thread has until it is back, as /proc shows it.
inline constexpr std::uint64_t all_signals = ~std::uint64_t{0} & ~(std::uint64_t{1} << 8) & ~(std::uint64_t{1} << 18);
/// The same for a thread that blocks all of them anyway: the last signal is let through.
std::uint64_t mask_during_call(std::uint64_t own);

/// Threads that did not stop in time are let go when they do; also each Stop looks after them.
void let_late_threads_go();

}  // namespace blockyard::record::attach
