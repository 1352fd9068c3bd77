// What a traced run tells its tracer, in memory that both processes share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "replay/plan/plan_format.hpp"

namespace blockyard::replay {

/// What one thread of the journal is doing: written by that thread, read by the tracer while the thread stands still.
struct Mark {
  static constexpr std::uint32_t lab = none;           ///< the replayer's own work: nobody's system calls
  static constexpr std::uint32_t outside = none - 1u;  ///< the allocator's work for no event: a thread's start or stop

  std::atomic<std::uint32_t> kernel_id{0};  ///< gettid(); 0 until the thread runs
  std::atomic<std::uint32_t> journal_thread{0};
  std::atomic<std::uint32_t> doing{lab};  ///< the event at hand, or one of the above
};

struct TraceBoard {
  std::atomic<std::uint32_t> allocator_loaded{0};  ///< threads that were there before are the lab's
  std::atomic<std::uint32_t> threads{1};           ///< marks in use; the first is the main thread's
  Mark marks[max_threads];
};

/// The calling thread works for the allocator while this lives, for `event` or for none. Does nothing in a run that is
/// not traced (`mark` is null).
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

}  // namespace blockyard::replay
