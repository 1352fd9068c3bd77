#include "replay/run/drive.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/clock.hpp"
#include "journal/event.hpp"
#include "replay/run/failure.hpp"
#include "replay/run/order.hpp"
#include "replay/run/pacer.hpp"

namespace blockyard::replay {
namespace {

using journal::Kind;

std::uint32_t saturated(std::uint64_t ticks) {
  return ticks > 0xffff'ffffu ? 0xffff'ffffu : static_cast<std::uint32_t>(ticks);
}

// Has the value in a register from here on: neither its computation nor its load may sink into a timed region.
template <typename T>
[[gnu::always_inline]] inline void settle(T& value) {
  asm volatile("" : "+r"(value));
}

struct Span {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// The clock reads, and between them the call. Where the allocator needs a lock, waiting for it is part of what it
// costs.
template <bool timed, bool locked, typename Call>
[[gnu::always_inline]] inline void measure(Span& span, std::mutex& lock, Call call) {
  if constexpr (timed) span.begin = base::ticks_fenced();
  if constexpr (locked) lock.lock();
  call();
  if constexpr (locked) lock.unlock();
  if constexpr (timed) span.end = base::ticks_fenced();
}

template <bool timed, bool locked, bool traced>
void follow(Session& session, ReplayThread& thread) {
  const by_adapter calls = *session.adapter;
  const bool sized_free = (calls.flags & BY_ADAPTER_SIZED_FREE) != 0;
  const Touch touch = session.touch;
  const double pace = session.ticks_per_plan_ns;
  const std::uint64_t clock_start = session.clock_start;
  const auto giver = static_cast<std::uint16_t>(thread.index);
  Slot* const slots = session.slots;
  Record* const records = thread.records;
  const std::uint64_t mask = thread.mask;
  std::mutex& lock = session.lock;
  Looker& looker = thread.looker;
  JournalOrder order(session, thread);
  const bool in_order = session.in_order;
  std::uint64_t live = thread.progress.live.load(std::memory_order_relaxed);
  std::uint64_t blocks = thread.progress.blocks.load(std::memory_order_relaxed);
  std::uint64_t order_waits = 0;
  std::uint64_t plan_ns = 0;

  wait_until(clock_start, session.sleep_lead, session.ticks_per_ns);
  looker.rebase();
  std::uint64_t published = 0;
  for (std::uint64_t i = 0;; ++i) {
    if (i == published) [[unlikely]] {
      published = await_records(thread, i);
      if (i == published) break;
      looker.rebase();
    }
    Record& record = records[i & mask];
    const std::uint64_t size = record.size();
    if (record.kind == kind_pause) [[unlikely]] {
      plan_ns += size;
      thread.progress.done.store(i + 1, std::memory_order_release);
      continue;
    }
    // While there is time: the slot that the next event needs. Past the last record lies one of zeros.
    __builtin_prefetch(&slots[records[(i + 1) & mask].order.slot], 1);
    const std::uint32_t event = record.event;
    if (in_order) [[unlikely]] {
      order.come_to(event);
    }
    const std::uint32_t after = record.order.after;
    Slot& slot = slots[record.order.slot];
    plan_ns += record.delta_ns;
    const std::uint64_t due = clock_start + static_cast<std::uint64_t>(static_cast<double>(plan_ns) * pace);
    if (thread.polluter.wanted()) [[unlikely]] {
      if (thread.polluter.walk(pace != 0 ? due : ~std::uint64_t{0})) looker.rebase();
    }
    if (pace != 0) {
      thread.progress.due.store(due, std::memory_order_relaxed);
      wait_until(due, session.sleep_lead, session.ticks_per_ns, looker);
    }
    if (in_order && order.await(event)) [[unlikely]] {
      looker.rebase();
    }
    if (after != none && slot.done.load(std::memory_order_acquire) != after) [[unlikely]] {
      ++order_waits;
      wait_for_event(slot, after, session.ticks_per_ns);
      looker.rebase();
    }

    if constexpr (traced) thread.mark->doing.store(event, std::memory_order_release);
    Span call;
    std::uint64_t asked = size;
    void* block = slot.block;
    const std::uint64_t old_size = slot.size;
    std::uint64_t fresh_from = 0;
    switch (static_cast<Kind>(record.kind)) {
      case Kind::allocate: {
        auto* function = calls.allocate;
        settle(function);
        settle(asked);
        measure<timed, locked>(call, lock, [&] { block = function(asked); });
        break;
      }
      case Kind::allocate_zeroed: {
        auto* function = calls.allocate_zeroed;
        settle(function);
        settle(asked);
        measure<timed, locked>(call, lock, [&] { block = function(asked); });
        break;
      }
      case Kind::allocate_aligned: {
        auto* function = calls.allocate_aligned;
        std::size_t alignment = std::size_t{1} << record.alignment_log2;
        settle(function);
        settle(alignment);
        settle(asked);
        measure<timed, locked>(call, lock, [&] { block = function(alignment, asked); });
        break;
      }
      case Kind::reallocate: {
        auto* function = calls.reallocate;
        std::uint64_t old_bytes = old_size;
        std::size_t alignment = std::size_t{1} << slot.alignment_log2;
        settle(function);
        settle(block);
        settle(old_bytes);
        settle(alignment);
        settle(asked);
        measure<timed, locked>(call, lock, [&] { block = function(block, old_bytes, alignment, asked); });
        fresh_from = std::min(old_size, size);  // the allocator itself wrote what it copied
        break;
      }
      default:
        if (sized_free) {
          auto* function = calls.free_sized;
          std::size_t alignment = std::size_t{1} << record.alignment_log2;
          settle(function);
          settle(block);
          settle(alignment);
          settle(asked);
          measure<timed, locked>(call, lock, [&] { function(block, asked, alignment); });
        } else {
          auto* function = calls.free;
          settle(function);
          settle(block);
          measure<timed, locked>(call, lock, [&] { function(block); });
        }
        break;
    }

    // Of a slow call and its touch each is looked at by itself. What is fast is not looked at: no fault fits into it.
    std::uint8_t causes = 0;
    std::uint64_t unlooked_from = call.begin;
    Span touching{call.end, call.end};
    if constexpr (timed) {
      if (looker.wanted(call.begin, call.end)) [[unlikely]] {
        causes = looker.look(call.begin, call.end, cause::fault_in_call);
        touching.begin = touching.end = unlooked_from = base::ticks_fenced();
      }
    }
    if (record.kind == static_cast<std::uint8_t>(Kind::free)) {
      slot.block = nullptr;
      live -= size;
      --blocks;
    } else {
      if (block == nullptr && size != 0) [[unlikely]] {
        out_of_memory(session, event, size);
      }
      if (touch != Touch::nothing && size > fresh_from && block != nullptr) {
        touch_bytes(touch, static_cast<char*>(block) + fresh_from, size - fresh_from);
        if constexpr (timed) touching.end = base::ticks_fenced();
      }
      live += size;
      if (record.kind == static_cast<std::uint8_t>(Kind::reallocate)) {
        live -= old_size;
      } else {
        ++blocks;
      }
      slot.fresh = true;
      slot.block = block;
      slot.size = size;
      slot.giver = giver;
      slot.alignment_log2 = record.alignment_log2;
    }
    if constexpr (traced) thread.mark->doing.store(Mark::lab, std::memory_order_release);
    slot.done.store(event, std::memory_order_release);  // before the look: another thread may be waiting
    if constexpr (timed) {
      if (looker.wanted(unlooked_from, touching.end)) [[unlikely]] {
        causes |= looker.look(unlooked_from, touching.end, cause::fault_in_touch);
      } else {
        looker.over(touching.end);
      }
      const std::uint64_t call_ticks = call.end - call.begin;
      const std::uint64_t touch_ticks = touching.end - touching.begin;
      record.outcome = {call.begin - clock_start, saturated(call_ticks), saturated(touch_ticks)};
      record.cause = looker.told(call_ticks, touch_ticks, causes);
    }
    thread.progress.live.store(live, std::memory_order_relaxed);
    thread.progress.blocks.store(blocks, std::memory_order_relaxed);
    thread.progress.done.store(i + 1, std::memory_order_release);
  }
  order.leave();
  thread.order_waits = order_waits;
  thread.end_ticks = base::ticks();
}

}  // namespace

thread_local ReplayThread* current_thread = nullptr;

std::uint64_t await_records(ReplayThread& thread, std::uint64_t next) {
  std::uint64_t published = thread.published.load(std::memory_order_acquire);
  if (published != next || next == thread.count) return published;
  const std::uint64_t begin = base::ticks();
  while ((published = thread.published.load(std::memory_order_acquire)) == next) sleep_shortly();
  ++thread.outruns;
  thread.outrun_ticks += base::ticks() - begin;
  return published;
}

void wait_for_event(const Slot& slot, std::uint32_t event, double ticks_per_ns) {
  // The other thread may need this core: spin no longer than it takes when both run.
  const std::uint64_t patience = base::ticks() + static_cast<std::uint64_t>(sleep_lead_ns * ticks_per_ns);
  while (slot.done.load(std::memory_order_acquire) != event) {
    if (base::ticks() < patience) {
      relax();
    } else {
      sleep_shortly();
    }
  }
}

void out_of_memory(const Session& session, std::uint32_t event, std::uint64_t size) {
  SafeText reason;
  reason << "the allocator " << session.allocator << " ran out of memory at event " << event << ", which asks for "
         << size << " bytes";
  if ((session.adapter->flags & BY_ADAPTER_NEEDS_POOL) != 0) reason << "; its pool is sized from the journal's peak";
  fail_run(reason);
}

void restore_block(Session& session, ReplayThread& thread, const Op& op) {
  const by_adapter& calls = *session.adapter;
  Slot& slot = session.slots[op.slot];
  const std::uint64_t size = op.size();
  const std::unique_lock<std::mutex> lock =
      session.locked ? std::unique_lock(session.lock) : std::unique_lock<std::mutex>();
  void* block = nullptr;
  if (op.alignment_log2 > natural_alignment_log2) {
    block = calls.allocate_aligned(std::size_t{1} << op.alignment_log2, size);
  } else if (op.kind == static_cast<std::uint8_t>(Kind::allocate_zeroed)) {
    block = calls.allocate_zeroed(size);
  } else {
    block = calls.allocate(size);
  }
  if (block == nullptr && size != 0) out_of_memory(session, op.event, size);
  slot.block = block;
  slot.size = size;
  slot.giver = static_cast<std::uint16_t>(thread.index);
  slot.alignment_log2 = op.alignment_log2;
  slot.fresh = false;
  slot.done.store(op.event, std::memory_order_release);
  if (session.verify) {
    fill_pattern(slot, op.event);
  } else if (session.touch != Touch::nothing && block != nullptr) {
    touch_bytes(session.touch, static_cast<char*>(block), size);
  }
  thread.progress.live.store(thread.progress.live.load(std::memory_order_relaxed) + size, std::memory_order_relaxed);
  thread.progress.blocks.fetch_add(1, std::memory_order_relaxed);
  thread.progress.done.fetch_add(1, std::memory_order_relaxed);
}

void release_block(Session& session, Slot& slot) {
  const by_adapter& calls = *session.adapter;
  if ((calls.flags & BY_ADAPTER_SIZED_FREE) != 0) {
    calls.free_sized(slot.block, slot.size, std::size_t{1} << slot.alignment_log2);
  } else {
    calls.free(slot.block);
  }
  slot.block = nullptr;
}

void drive(Session& session, ReplayThread& thread) {
  if (session.timed) {
    session.locked ? follow<true, true, false>(session, thread) : follow<true, false, false>(session, thread);
  } else if (session.board != nullptr) {
    session.locked ? follow<false, true, true>(session, thread) : follow<false, false, true>(session, thread);
  } else {
    session.locked ? follow<false, true, false>(session, thread) : follow<false, false, false>(session, thread);
  }
}

Floors measure_floors() {
  constexpr std::size_t count = 20'001;
  static std::array<std::uint32_t, count> calls;
  static std::array<std::uint32_t, count> touches;
  std::mutex unused;
  std::uint32_t step = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Span span;
    measure<true, false>(span, unused, [] {});
    const std::uint64_t touched = base::ticks_fenced();
    calls[i] = saturated(span.end - span.begin);
    touches[i] = saturated(touched - span.end);
    step = std::gcd(std::gcd(step, calls[i]), touches[i]);
  }
  const auto middle = count / 2;
  std::nth_element(calls.begin(), calls.begin() + middle, calls.end());
  std::nth_element(touches.begin(), touches.begin() + middle, touches.end());
  return {calls[middle], touches[middle], step};
}

}  // namespace blockyard::replay
