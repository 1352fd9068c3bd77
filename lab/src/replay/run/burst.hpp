// Untimed replay: a thread's events in bursts, the clock read before the first and behind the last.
//
// Two clock reads around each call drain the processor's pipeline: what overlaps in a program stands alone, and a call
// of a few nanoseconds seems to take several times that. A burst has two reads for all its calls. Less the same on the
// allocator `null`, its time is what the allocator costs there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "clock/clock.hpp"
#include "replay/run/order.hpp"
#include "replay/run/pacer.hpp"
#include "replay/run/session.hpp"
#include "replay/run/turn.hpp"

namespace blockyard::replay {

/// A burst has the events of so much of the replay's time. A game's frame has 100 of them; on its journal bursts of 10,
/// 100 and 1,000 us gave 37, 35 and 33 ms in all.
inline constexpr double burst_ns = 100'000;
/// At most so many events, so that a burst is short at any pace: two clock reads are a thousandth of them.
inline constexpr std::uint32_t most_burst_events = 512;

/// Ends the burst that began at `begin` and writes what it took into `last`, the record of its last op. Time that the
/// thread was kept from running, by the machine and not by the allocator, is not the burst's.
void end_burst(Record& last, std::uint64_t begin, const Session& session, CauseReader& cause_reader);

/// As Turn, for a burst of events at a time: all of them begin when the first is due. Waits end a burst, as do ends of
/// frames and phases. `marks` of the session says where those are.
class BurstTurn {
 public:
  static constexpr bool in_bursts = true;

  BurstTurn(const Session& session, ReplayThread& thread)
      : session_(session), thread_(thread), cause_reader_(thread.cause_reader), order_(session, thread) {}

  void await_clock() {
    wait_until(session_.clock_start, session_.sleep_lead, session_.ticks_per_ns, cause_reader_);
    cause_reader_.rebase();
  }

  void pause(std::uint64_t ns) { plan_ns_ += ns; }

  void come_to(std::uint32_t event) {
    end();
    if (in_order_) order_.come_to(event);
  }

  [[gnu::always_inline]] void await(Record& record, const Slot& slot) {
    const std::uint32_t event = record.event;
    if (in_order_) [[unlikely]] {
      order_.come_to(event);
    }
    plan_ns_ += record.delta_ns;
    if (left_ == 0 || plan_ns_ > last_ns_ || event >= next_mark_) [[unlikely]] {
      end();
      while (next_mark_ <= event && next_mark_ != none) next_mark_ = marks_ == end_marks_ ? none : *marks_++;
      await_pace();
      begin();
    }
    if (in_order_ && !order_.has_come(event)) [[unlikely]] {
      end();
      if (order_.await(event)) cause_reader_.rebase();
      begin();
    }
    const std::uint32_t after = record.order.after;
    if (after != none && slot.done.load(std::memory_order_acquire) != after) [[unlikely]] {
      end();
      ++order_waits_;
      wait_for_event(slot, after, session_.ticks_per_ns);
      cause_reader_.rebase();
      begin();
    }
    --left_;
    last_ = &record;
  }

  /// Work that waits for nothing and belongs to no event.
  void add(Record& record) {
    if (last_ == nullptr) begin();
    last_ = &record;
  }

  void end() {
    if (last_ != nullptr) end_burst(*last_, begin_, session_, cause_reader_);
    last_ = nullptr;
    left_ = 0;
  }

  void leave() {
    order_.leave();
    thread_.order_waits = order_waits_;
    thread_.end_ticks = clock::ticks();
  }

 private:
  void await_pace() {
    const std::uint64_t due = clock_start_ + static_cast<std::uint64_t>(static_cast<double>(plan_ns_) * pace_);
    if (thread_.polluter.wanted()) [[unlikely]] {
      if (thread_.polluter.walk(pace_ != 0 ? due : ~std::uint64_t{0})) cause_reader_.rebase();
    }
    if (pace_ == 0) return;
    thread_.progress.due.store(due, std::memory_order_relaxed);
    wait_until(due, session_.sleep_lead, session_.ticks_per_ns, cause_reader_);
  }

  void begin() {
    left_ = most_burst_events;
    last_ns_ = plan_ns_ + stretch_ns_;
    begin_ = clock::ticks_fenced();
  }

  const Session& session_;
  ReplayThread& thread_;
  CauseReader& cause_reader_;
  JournalOrder order_;
  const bool in_order_ = session_.in_order;
  const double pace_ = session_.ticks_per_plan_ns;
  const std::uint64_t clock_start_ = session_.clock_start;
  /// At no pace a burst has as many events as it may.
  const std::uint64_t stretch_ns_ = pace_ == 0 ? ~std::uint64_t{0} >> 1
                                               : static_cast<std::uint64_t>(burst_ns* session_.ticks_per_ns / pace_);
  const std::uint32_t* marks_ = session_.marks.data();
  const std::uint32_t* const end_marks_ = marks_ + session_.marks.size();
  std::uint32_t next_mark_ = 0;  ///< the first mark behind the burst
  std::uint32_t left_ = 0;       ///< how many more events the burst may have; 0 where there is none
  std::uint64_t last_ns_ = 0;    ///< of the plan; the burst has no event that is due later
  std::uint64_t plan_ns_ = 0;
  std::uint64_t begin_ = 0;  ///< ticks
  std::uint64_t order_waits_ = 0;
  Record* last_ = nullptr;  ///< of the burst so far
};

}  // namespace blockyard::replay
