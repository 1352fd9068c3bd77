// What the threads of one run share: the records they follow, the blocks they hold, the clock they follow.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "blockyard/adapter.h"
#include "replay/observe/cause_reader.hpp"
#include "replay/observe/tracer.hpp"
#include "replay/plan/plan_format.hpp"
#include "replay/run/polluter.hpp"
#include "replay/run/touch.hpp"

namespace blockyard::replay {

/// One event of a run: first what to do and then, in the same bytes, what was measured. 32 bytes, half a cache line:
/// all data of the run are one stream, and the outcome goes to the cache line that the order came from.
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
  struct Burst {
    std::uint64_t start;  ///< ticks after the clock's start
    std::uint64_t ticks;
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
    Burst burst;  ///< in untimed runs, of a kind_burst_end; its `size_low` is the ticks that the machine took besides
  };

  [[nodiscard]] std::uint64_t size() const { return (std::uint64_t{size_high} << 32) | size_low; }
};
static_assert(sizeof(Record) == 32);

/// A live block. Two fit a cache line. One thread at a time uses it and hands it on through `done`.
struct alignas(32) Slot {
  void* block;         ///< null while the slot is empty
  std::uint64_t size;  ///< bytes asked for
  std::atomic<std::uint32_t>
      done;             ///< the last event on this slot; once the clock has stopped, the next slot of a chain
  std::uint16_t giver;  ///< index of the replay thread that allocated the block
  std::uint8_t alignment_log2;
  bool fresh;  ///< allocated by a measured event, not restored

  void hold(void* given) { std::atomic_ref(block).store(given, std::memory_order_relaxed); }
  /// What it holds by now, to any thread: good for a prefetch.
  [[nodiscard]] void* glance() { return std::atomic_ref(block).load(std::memory_order_relaxed); }
};
static_assert(sizeof(Slot) == 32);

/// What a replay thread publishes for the watching thread. Nothing else lies on these cache lines.
struct alignas(128) Progress {
  std::atomic<std::uint64_t> done{0};    ///< records finished
  std::atomic<std::uint64_t> live{0};    ///< bytes this thread allocated less bytes it freed, modulo 2^64
  std::atomic<std::uint64_t> blocks{0};  ///< blocks this thread allocated less blocks it freed, modulo 2^64
  std::atomic<std::uint64_t> due{0};     ///< ticks at which the next event is due
};

struct ReplayThread {
  Progress progress;
  /// Records that may be followed: all of them from the start, unless the journal is streamed. On a cache line of its
  /// own, which the thread reads only when it has followed all that were published the last time.
  alignas(128) std::atomic<std::uint64_t> published{0};
  /// The event that the thread comes to next, where the journal's order is kept (order.hpp). Other threads read it, so
  /// it has a cache line of its own.
  alignas(128) std::atomic<std::uint32_t> next_event{0};
  alignas(128) CauseReader cause_reader;  ///< used by this thread alone
  Polluter polluter;
  std::uint32_t index = 0;  ///< in Session::threads
  std::uint32_t journal_thread = 0;
  int core = -1;              ///< the core it stays on while the clock runs; -1: wherever the kernel puts it
  Record* records = nullptr;  ///< a ring where the journal is streamed
  std::uint64_t mask = ~std::uint64_t{0};  ///< the ring's length less 1; all ones where it is no ring
  std::uint64_t count = 0;                 ///< records in all
  std::uint64_t outruns = 0;               ///< how often it had followed all published records and more were to come
  std::uint64_t outrun_ticks = 0;          ///< how long it waited then
  std::uint64_t order_waits = 0;  ///< events that another thread's event had to end for and that came before its end
  std::uint64_t end_ticks = 0;    ///< when its last event was over
  std::uint32_t chain = none;     ///< once the clock has stopped: first slot that it allocated and nobody freed
  Mark* mark = nullptr;           ///< on the board of a traced run, else null
  pid_t kernel_id = 0;            ///< gettid()
  std::uint64_t start_ticks = 0;  ///< duration of the allocator's start of the thread
  std::uint64_t stop_ticks = 0;   ///< duration of its stop, the kernel's end of the thread included
  /// 1 when it may start and restore its preamble, 2 when it may free what is left. Each thread waits for its own turn:
  /// a shared one would wake all threads for each of them.
  std::atomic<std::uint32_t> turn{0};
  std::uint64_t left_ticks = 0;  ///< when it had nothing left to do
  void* signal_stack = nullptr;
  std::size_t signal_stack_bytes = 0;

  [[nodiscard]] Record& record(std::uint64_t number) const { return records[number & mask]; }
};

class Rerouting;

/// What a run is doing, for messages and the watching thread.
enum class Phase : std::uint32_t { starting, restoring, running, freeing, writing };

struct Session {
  const by_adapter* adapter = nullptr;
  const char* allocator = "";  ///< its name in messages
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
  bool in_bursts = false;                ///< untimed; a clock around each burst of events
  std::span<const std::uint32_t> marks;  ///< events at which bursts end: marks of frames and phases, ascending
  bool verify = false;
  bool in_order = false;  ///< each event begins when all before it are over
  bool locked = false;    ///< calls go through `lock`
  std::mutex lock;

  std::atomic<Phase> phase{Phase::starting};
  std::atomic<std::uint32_t> restored{0};  ///< 1 once every thread has started and restored its preamble
  std::atomic<std::uint32_t> go{0};
  std::atomic<std::uint32_t> finished{0};  ///< threads that have followed all their records
  Rerouting* rerouting = nullptr;          ///< null for a plan without routes

  [[nodiscard]] std::unique_lock<std::mutex> lock_if_needed() {
    return locked ? std::unique_lock(lock) : std::unique_lock<std::mutex>();
  }
  [[nodiscard]] std::uint64_t ns(std::uint64_t ticks) const {
    return static_cast<std::uint64_t>(static_cast<double>(ticks) / ticks_per_ns);
  }
  [[nodiscard]] std::uint64_t ticks(double ns) const { return static_cast<std::uint64_t>(ns * ticks_per_ns); }
};

/// The calling thread's; null on threads that belong to the lab or to the allocator.
extern thread_local ReplayThread* current_thread;

}  // namespace blockyard::replay
