// What the threads of one run share: the records they follow, the blocks they hold, the clock they go by.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "blockyard/adapter.h"
#include "replay/observe/cause_reader.hpp"
#include "replay/observe/trace_board.hpp"
#include "replay/plan/plan_format.hpp"
#include "replay/run/polluter.hpp"
#include "replay/run/touch.hpp"

namespace blockyard::replay {

/// One event of a run: first what is to be done, then, in the same bytes, what came of it. 32 bytes, half a cache line:
/// the whole run's data are one stream, and the line that the outcome goes to is the one that the order just came from.
struct alignas(32) Record {
  struct Order {
    std::uint32_t slot;
    std::uint32_t after;  ///< as Op::after
  };
  struct Outcome {
    std::uint64_t start;  ///< ticks after the clock's start
    std::uint32_t call;   ///< ticks, saturating
    std::uint32_t touch;
  };

  std::uint32_t event;
  std::uint32_t size_low;
  std::uint16_t size_high;
  std::uint8_t kind;
  union {
    std::uint8_t alignment_log2;
    std::uint8_t cause;  ///< bits of cause::
  };
  std::uint32_t delta_ns;
  union {
    Order order;
    Outcome outcome;
  };

  [[nodiscard]] std::uint64_t size() const { return (std::uint64_t{size_high} << 32) | size_low; }
};
static_assert(sizeof(Record) == 32);

/// A live block. Two to a cache line; used by one thread at a time, handed on through `done`.
struct alignas(32) Slot {
  void* block;         ///< null while the slot is empty
  std::uint64_t size;  ///< bytes asked for
  std::atomic<std::uint32_t>
      done;             ///< the last event on this slot; once the clock has stopped, the next slot of a chain
  std::uint16_t giver;  ///< index of the replay thread that allocated it
  std::uint8_t alignment_log2;
  bool fresh;  ///< allocated by a measured event, not restored
};
static_assert(sizeof(Slot) == 32);

/// What a replay thread tells the watching thread: written by the one, read by the other, nothing else on its lines.
struct alignas(128) Progress {
  std::atomic<std::uint64_t> done{0};    ///< records finished
  std::atomic<std::uint64_t> live{0};    ///< bytes asked for less bytes freed by this thread, modulo 2^64
  std::atomic<std::uint64_t> blocks{0};  ///< allocated less freed by this thread, modulo 2^64
  std::atomic<std::uint64_t> due{0};     ///< ticks at which the next event is due
};

struct ReplayThread {
  Progress progress;
  /// Records that may be followed: all from the start, unless the journal is streamed. On a line of its own, which the
  /// thread reads only when it has followed all that were there the last time.
  alignas(128) std::atomic<std::uint64_t> published{0};
  /// The event that it comes to, where the journal's order is kept (order.hpp). On a line of its own: others look at it.
  alignas(128) std::atomic<std::uint32_t> next_event{0};
  alignas(128) CauseReader cause_reader;  ///< the thread's own
  Polluter polluter;
  std::uint32_t index = 0;  ///< in Session::threads
  std::uint32_t journal_thread = 0;
  int core = -1;                           ///< that it stays on while the clock runs; -1: wherever the kernel puts it
  Record* records = nullptr;               ///< a ring where the journal is streamed
  std::uint64_t mask = ~std::uint64_t{0};  ///< of the ring's length; all ones where it is none
  std::uint64_t count = 0;                 ///< records in all
  std::uint64_t outruns = 0;               ///< how often it had followed all that was published, and more was to come
  std::uint64_t outrun_ticks = 0;          ///< how long it waited then
  std::uint64_t order_waits = 0;           ///< events that found another thread's event, which they need, not over
  std::uint64_t end_ticks = 0;             ///< when its last event was over
  std::uint32_t chain = none;     ///< once the clock has stopped: first slot that it allocated and nobody freed
  Mark* mark = nullptr;           ///< on the board of a traced run, else null
  pid_t kernel_id = 0;            ///< gettid()
  std::uint64_t start_ticks = 0;  ///< that the allocator's start of the thread took
  std::uint64_t stop_ticks = 0;   ///< that its stop took, the kernel's end of the thread included
  /// 1 when it may start and restore its preamble, 2 when it may free what is left. Each waits for its own: one that all
  /// waited for would wake all of them for every single one.
  std::atomic<std::uint32_t> turn{0};
  std::uint64_t left_ticks = 0;  ///< when it was through with all of the replay
  void* signal_stack = nullptr;
  std::size_t signal_stack_bytes = 0;

  [[nodiscard]] Record& record(std::uint64_t number) const { return records[number & mask]; }
};

/// What a run is doing, for its failures and the watching thread.
enum class Phase : std::uint32_t { starting, restoring, running, freeing, writing };

struct Session {
  const by_adapter* adapter = nullptr;
  const char* allocator = "";  ///< what messages call it
  std::span<ReplayThread> threads;
  Slot* slots = nullptr;
  double ticks_per_ns = 1;
  double ticks_per_plan_ns = 0;   ///< the pace; 0 is as fast as possible
  std::uint64_t clock_start = 0;  ///< ticks
  std::uint64_t sleep_lead = 0;   ///< ticks before an event at which its thread wakes and spins
  Touch touch = Touch::nothing;
  CauseSettings causes;         ///< for the threads' cause readers; off in runs that are not timed
  TraceBoard* board = nullptr;  ///< of a traced run
  bool timed = true;
  bool verify = false;
  bool in_order = false;  ///< each event begins when all before it are over
  bool locked = false;    ///< calls go through `lock`
  std::mutex lock;

  std::atomic<Phase> phase{Phase::starting};
  std::atomic<std::uint32_t> restored{0};  ///< 1 once every thread has started and restored its preamble
  std::atomic<std::uint32_t> go{0};
  std::atomic<std::uint32_t> finished{0};  ///< threads that are through with their records

  [[nodiscard]] std::unique_lock<std::mutex> lock_if_needed() {
    return locked ? std::unique_lock(lock) : std::unique_lock<std::mutex>();
  }
  [[nodiscard]] std::uint64_t ns(std::uint64_t ticks) const {
    return static_cast<std::uint64_t>(static_cast<double>(ticks) / ticks_per_ns);
  }
  [[nodiscard]] std::uint64_t ticks(double ns) const { return static_cast<std::uint64_t>(ns * ticks_per_ns); }
};

/// The calling thread's, null on threads that are the lab's or the allocator's own.
extern thread_local ReplayThread* current_thread;

}  // namespace blockyard::replay
