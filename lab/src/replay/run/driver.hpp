// Carries out the events of one thread: the measured call, the touch, the outcome.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <type_traits>

#include "journal/event.hpp"
#include "replay/run/blocks.hpp"
#include "replay/run/timed_call.hpp"
#include "replay/run/turn.hpp"

namespace blockyard::replay {

/// A plan without routes: every event is the program's allocator's.
struct NoRoutes {
  NoRoutes(Session&, ReplayThread&) {}
};

/// Carries out one thread's events. It lives on the thread's stack and all of it is inlined into the loop, so that its
/// fields stay in registers.
template <bool timed, bool locked, bool traced, typename Routes = NoRoutes>
class Driver {
 public:
  Driver(Session& session, ReplayThread& thread)
      : session_(session),
        thread_(thread),
        routes_(session, thread),
        calls_(*session.adapter),
        live_(thread.progress.live.load(std::memory_order_relaxed)),
        blocks_(thread.progress.blocks.load(std::memory_order_relaxed)) {}

  [[gnu::always_inline]] void step(Record& record, Slot& slot) {
    const std::uint32_t event = record.event;
    if constexpr (traced) thread_.mark->doing.store(event, std::memory_order_release);
    Done done{.block = slot.block};
    if (!rerouted(record, slot, done)) call(record, slot, done);
    done.touch = {done.call.end, done.call.end};
    done.unread_from = done.call.begin;
    read_causes_of_call(done);
    if (record.kind == static_cast<std::uint8_t>(journal::Kind::free)) {
      forget(record, slot);
    } else {
      keep(record, slot, done);
    }
    if constexpr (traced) thread_.mark->doing.store(Mark::lab, std::memory_order_release);
    slot.done.store(event, std::memory_order_release);  // before any reading: another thread may be waiting
    write_outcome(record, done);
    thread_.progress.live.store(live_, std::memory_order_relaxed);
    thread_.progress.blocks.store(blocks_, std::memory_order_relaxed);
  }

  /// The end of a frame of the library's temp memory. The program's frame ends at its time.
  template <typename Turn>
  void end_frame(Turn& turn, Record& record) {
    const bool of_program = record.size() != 0;
    if (of_program) {
      turn.await(record, session_.slots[0]);
    } else {
      turn.add(record);
    }
    Span call;
    measure<timed, false>(call, session_.lock, [&] { Routes::end_frame(of_program); });
    if constexpr (Turn::in_bursts) {
      if (of_program) turn.end();  // what follows belongs to the next frame
    }
    if constexpr (timed) {
      cause_reader_.wanted(call.begin, call.end) ? cause_reader_.rebase() : cause_reader_.skip(call.end);
      record.outcome = {call.begin - clock_start_, saturated(call.end - call.begin), 0};
    }
  }

  [[nodiscard]] const Routes& routes() const { return routes_; }

 private:
  /// What one event did.
  struct Done {
    void* block;
    std::uint64_t fresh_from = 0;  ///< bytes of the block that hold what the allocator copied
    Span call{};
    Span touch{};
    std::uint64_t unread_from = 0;  ///< ticks; the causes of what happened before are known
    std::uint8_t causes = 0;
  };

  // Whether the event is of a routed slot, and then it is carried out.
  [[gnu::always_inline]] bool rerouted(const Record& record, const Slot& slot, Done& done) {
    if constexpr (std::is_same_v<Routes, NoRoutes>) {
      return false;
    } else {
      const std::uint32_t route = routes_.route_of(slot);
      if (route == none) return false;
      if (record.kind == static_cast<std::uint8_t>(journal::Kind::reallocate)) {
        done.fresh_from = std::min(slot.size, record.size());
      }
      done.block = routes_.carry_out(route, record, slot, [&](auto of_program, auto call) {
        measure<timed, locked&& decltype(of_program)::value>(done.call, session_.lock, call);
      });
      return true;
    }
  }

  [[gnu::always_inline]] void call(const Record& record, const Slot& slot, Done& done) {
    std::uint64_t asked = record.size();
    void* block = done.block;
    std::mutex& lock = session_.lock;
    switch (static_cast<journal::Kind>(record.kind)) {
      case journal::Kind::allocate: {
        auto* function = calls_.allocate;
        settle(function);
        settle(asked);
        measure<timed, locked>(done.call, lock, [&] { block = function(asked); });
        break;
      }
      case journal::Kind::allocate_zeroed: {
        auto* function = calls_.allocate_zeroed;
        settle(function);
        settle(asked);
        measure<timed, locked>(done.call, lock, [&] { block = function(asked); });
        break;
      }
      case journal::Kind::allocate_aligned: {
        auto* function = calls_.allocate_aligned;
        std::size_t alignment = std::size_t{1} << record.alignment_log2;
        settle(function);
        settle(alignment);
        settle(asked);
        measure<timed, locked>(done.call, lock, [&] { block = function(alignment, asked); });
        break;
      }
      case journal::Kind::reallocate: {
        auto* function = calls_.reallocate;
        std::uint64_t old_bytes = slot.size;
        std::size_t alignment = std::size_t{1} << slot.alignment_log2;
        done.fresh_from = std::min(old_bytes, asked);
        settle(function);
        settle(block);
        settle(old_bytes);
        settle(alignment);
        settle(asked);
        measure<timed, locked>(done.call, lock, [&] { block = function(block, old_bytes, alignment, asked); });
        break;
      }
      default:
        if (sized_free_) {
          auto* function = calls_.free_sized;
          std::size_t alignment = std::size_t{1} << record.alignment_log2;
          settle(function);
          settle(block);
          settle(alignment);
          settle(asked);
          measure<timed, locked>(done.call, lock, [&] { function(block, asked, alignment); });
        } else {
          auto* function = calls_.free;
          settle(function);
          settle(block);
          measure<timed, locked>(done.call, lock, [&] { function(block); });
        }
        break;
    }
    done.block = block;
  }

  // The causes of a slow call and of a slow touch are read separately. What is fast needs no reading: no fault fits
  // into it.
  [[gnu::always_inline]] void read_causes_of_call(Done& done) {
    if constexpr (timed) {
      if (cause_reader_.wanted(done.call.begin, done.call.end)) [[unlikely]] {
        done.causes = cause_reader_.read(done.call.begin, done.call.end, cause::fault_in_call);
        done.touch.begin = done.touch.end = done.unread_from = clock::ticks_fenced();
      }
    }
  }

  [[gnu::always_inline]] void forget(const Record& record, Slot& slot) {
    slot.hold(nullptr);
    live_ -= record.size();
    --blocks_;
  }

  // Touches the block as a program would, and puts it into its slot.
  [[gnu::always_inline]] void keep(const Record& record, Slot& slot, Done& done) {
    const std::uint64_t size = record.size();
    if (done.block == nullptr && size != 0) [[unlikely]] {
      out_of_memory(session_, record.event, size);
    }
    if (touch_ != Touch::nothing && size > done.fresh_from && done.block != nullptr) {
      touch_bytes(touch_, static_cast<char*>(done.block) + done.fresh_from, size - done.fresh_from);
      if constexpr (timed) done.touch.end = clock::ticks_fenced();
    }
    live_ += size;
    if (record.kind == static_cast<std::uint8_t>(journal::Kind::reallocate)) {
      live_ -= slot.size;
    } else {
      ++blocks_;
    }
    slot.fresh = true;
    slot.hold(done.block);
    slot.size = size;
    slot.giver = giver_;
    slot.alignment_log2 = record.alignment_log2;
  }

  [[gnu::always_inline]] void write_outcome(Record& record, Done& done) {
    if constexpr (timed) {
      if (cause_reader_.wanted(done.unread_from, done.touch.end)) [[unlikely]] {
        done.causes |= cause_reader_.read(done.unread_from, done.touch.end, cause::fault_in_touch);
      } else {
        cause_reader_.skip(done.touch.end);
      }
      const std::uint64_t call_ticks = done.call.end - done.call.begin;
      const std::uint64_t touch_ticks = done.touch.end - done.touch.begin;
      record.outcome = {done.call.begin - clock_start_, saturated(call_ticks), saturated(touch_ticks)};
      record.cause = cause_reader_.for_row(call_ticks, touch_ticks, done.causes);
    }
  }

  Session& session_;
  ReplayThread& thread_;
  [[no_unique_address]] Routes routes_;
  const by_adapter calls_;
  std::uint64_t live_;    ///< as Progress::live
  std::uint64_t blocks_;  ///< as Progress::blocks
  CauseReader& cause_reader_ = thread_.cause_reader;
  const bool sized_free_ = (calls_.flags & BY_ADAPTER_SIZED_FREE) != 0;
  const Touch touch_ = session_.touch;
  const std::uint64_t clock_start_ = session_.clock_start;
  const std::uint16_t giver_ = static_cast<std::uint16_t>(thread_.index);
};

}  // namespace blockyard::replay
