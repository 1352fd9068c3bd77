// Which system calls an allocator makes, and at which events: a traced run publishes what it does in memory that its
// tracer shares.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "replay/plan/plan_format.hpp"

namespace blockyard::replay {

/// What one thread of the journal is doing. The thread writes it, and the tracer reads it while the thread is stopped.
struct Mark {
  static constexpr std::uint32_t lab = none;  ///< the replayer's own work: its system calls belong to no event
  static constexpr std::uint32_t outside =
      none - 1u;  ///< the allocator's work outside events: a thread's start or stop

  std::atomic<std::uint32_t> kernel_id{0};  ///< gettid(); 0 until the thread runs
  std::atomic<std::uint32_t> journal_thread{0};
  std::atomic<std::uint32_t> doing{lab};  ///< the event it carries out, or one of the above
};

struct TraceBoard {
  std::atomic<std::uint32_t> allocator_loaded{0};  ///< set when all the lab's threads exist
  std::atomic<std::uint32_t> threads{1};           ///< marks in use; the first is the main thread's
  Mark marks[max_threads];
};

/// While this lives, the calling thread works for the allocator, for `event` or outside events. Does nothing in a run
/// that is not traced (`mark` is null).
class Marked {
 public:
  explicit Marked(Mark* mark, std::uint32_t event = Mark::outside) : mark_(mark) {
    if (mark_ != nullptr) mark_->doing.store(event, std::memory_order_release);
  }
  ~Marked() {
    if (mark_ != nullptr) mark_->doing.store(Mark::lab, std::memory_order_release);
  }
  Marked(const Marked&) = delete;
  Marked& operator=(const Marked&) = delete;

 private:
  Mark* mark_;
};

/// Continues in a child process whose system calls the calling process records. This uses ptrace and needs no privilege
/// where the system lets a process trace its own child. Call it while there is one thread.
///
/// Returns only in the child, with the board on which the child's threads publish what they are doing. The calling
/// process passes interrupts on. When the child has ended well, it writes `folder`/syscalls.npy and ends as the child
/// did, with the same status or signal. Throws journal::Error where tracing is not allowed, and when the file can't be
/// written.
///
/// Every system call stops its thread twice, for some microseconds each time: a traced run's times mean nothing.
TraceBoard& go_on_traced(const std::string& folder);

}  // namespace blockyard::replay
