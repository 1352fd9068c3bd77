// When a thread's next event may begin.
#pragma once

#include <cstdint>

#include "clock/clock.hpp"
#include "journal/event.hpp"
#include "replay/run/order.hpp"
#include "replay/run/pacer.hpp"
#include "replay/run/session.hpp"

namespace blockyard::replay {

/// How many of the thread's records may be followed, once it has followed `next` of them. When there are more than have
/// been published, waits for the journal's reader, asleep, and counts that. Returns `next` when the thread has no more.
std::uint64_t await_records(ReplayThread& thread, std::uint64_t next);

/// Waits until the slot's last event is `event`.
void wait_for_event(const Slot& slot, std::uint32_t event, double ticks_per_ns);

/// Holds one thread's events to the plan. An event begins when its time has come, when all events before it are over
/// (where the journal's order is kept), and when the event that its slot waits for is over. Time spent waiting is
/// charged to no event. Everything is inlined, so that the fields stay in registers.
class Turn {
 public:
  static constexpr bool in_bursts = false;

  Turn(const Session& session, ReplayThread& thread)
      : session_(session), thread_(thread), cause_reader_(thread.cause_reader), order_(session, thread) {}

  /// Waits for the start of the clock.
  void await_clock() {
    wait_until(session_.clock_start, session_.sleep_lead, session_.ticks_per_ns, cause_reader_);
    cause_reader_.rebase();
  }

  /// The plan has no event of this thread for so long.
  void pause(std::uint64_t ns) { plan_ns_ += ns; }

  /// The thread has come to `event` and waits for something else first: earlier events of others need not wait for it.
  void come_to(std::uint32_t event) {
    if (in_order_) order_.come_to(event);
  }

  [[gnu::always_inline]] void await(const Record& record, const Slot& slot) {
    if (in_order_) [[unlikely]] {
      order_.come_to(record.event);
    }
    plan_ns_ += record.delta_ns;
    const std::uint64_t due = clock_start_ + static_cast<std::uint64_t>(static_cast<double>(plan_ns_) * pace_);
    if (thread_.polluter.wanted()) [[unlikely]] {
      if (thread_.polluter.walk(pace_ != 0 ? due : ~std::uint64_t{0})) cause_reader_.rebase();
    }
    if (pace_ != 0) {
      thread_.progress.due.store(due, std::memory_order_relaxed);
      wait_until(due, session_.sleep_lead, session_.ticks_per_ns, cause_reader_);
    }
    if (in_order_ && order_.await(record.event)) [[unlikely]] {
      cause_reader_.rebase();
    }
    const std::uint32_t after = record.order.after;
    if (after != none && slot.done.load(std::memory_order_acquire) != after) [[unlikely]] {
      ++order_waits_;
      wait_for_event(slot, after, session_.ticks_per_ns);
      cause_reader_.rebase();
    }
  }

  /// Work that waits for nothing and belongs to no event.
  static void add(const Record&) {}

  /// The thread has no more events.
  void leave() {
    order_.leave();
    thread_.order_waits = order_waits_;
    thread_.end_ticks = clock::ticks();
  }

 private:
  const Session& session_;
  ReplayThread& thread_;
  CauseReader& cause_reader_;
  JournalOrder order_;
  const bool in_order_ = session_.in_order;
  const double pace_ = session_.ticks_per_plan_ns;
  const std::uint64_t clock_start_ = session_.clock_start;
  std::uint64_t plan_ns_ = 0;
  std::uint64_t order_waits_ = 0;
};

/// The special ops of a plan without routes: pauses.
struct PausesOnly {
  [[gnu::always_inline]] static bool is_special(const Record& record) { return record.kind == kind_pause; }
  [[gnu::always_inline]] void operator()(auto& turn, const Record& record) const { turn.pause(record.size()); }
};

/// A burst comes to a record so many records after its slot is prefetched, and its block: longer than memory takes.
/// One record ahead, each event of the lab's waits for its slot, and longest where the allocator is fastest: `null`
/// would be taken off for what a program's calls hide.
inline constexpr std::uint64_t slot_ahead = 16;
inline constexpr std::uint64_t block_ahead = 8;

/// Prefetches the slot of `later`, and the block that `sooner` frees: a program has just used what it frees.
[[gnu::always_inline]] inline void prefetch(Slot* slots, const Record& later, const Record& sooner) {
  __builtin_prefetch(&slots[later.order.slot], 1);
  if (sooner.kind == static_cast<std::uint8_t>(journal::Kind::free)) {
    __builtin_prefetch(slots[sooner.order.slot].glance(), 1);
  }
}

/// Follows the thread's records from the clock's start to the last: calls `step(record, slot)` for each event when its
/// turn has come, and `special(turn, record)` for what is no event. Allocates nothing; its only system calls are
/// sleeps.
template <typename Turn = Turn, typename Step, typename Special = PausesOnly>
[[gnu::always_inline]] inline void for_each_event(const Session& session, ReplayThread& thread, Step step,
                                                  Special special = {}) {
  Slot* const slots = session.slots;
  Record* const records = thread.records;
  const std::uint64_t mask = thread.mask;
  Turn turn(session, thread);
  turn.await_clock();
  std::uint64_t published = 0;
  for (std::uint64_t i = 0;; ++i) {
    if (i == published) [[unlikely]] {
      if constexpr (Turn::in_bursts) {
        turn.end();
        thread.progress.done.store(i, std::memory_order_release);
      }
      published = await_records(thread, i);
      if (i == published) break;
      thread.cause_reader.rebase();
    }
    Record& record = records[i & mask];
    if (Special::is_special(record)) [[unlikely]] {
      special(turn, record);
    } else {
      if constexpr (Turn::in_bursts) {
        if (published - i > slot_ahead) [[likely]]
          prefetch(slots, records[(i + slot_ahead) & mask], records[(i + block_ahead) & mask]);
      } else {
        // Prefetches the slot of the next event while there is time. After the last record lies one of zeros.
        __builtin_prefetch(&slots[records[(i + 1) & mask].order.slot], 1);
      }
      Slot& slot = slots[record.order.slot];
      turn.await(record, slot);
      // The record before may have been its burst's last, which is known only now.
      if constexpr (Turn::in_bursts) thread.progress.done.store(i, std::memory_order_release);
      step(record, slot);
    }
    if constexpr (!Turn::in_bursts) thread.progress.done.store(i + 1, std::memory_order_release);
  }
  turn.leave();
}

}  // namespace blockyard::replay
