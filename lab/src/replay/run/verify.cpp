// The replay that checks the allocator rather than its speed.
#include <algorithm>
#include <bit>

#include "base/clock.hpp"
#include "journal/event.hpp"
#include "replay/run/drive.hpp"
#include "replay/run/failure.hpp"
#include "replay/run/order.hpp"
#include "replay/run/pacer.hpp"

namespace blockyard::replay {
namespace {

using journal::Kind;

// A byte that depends on the giving event and the offset: two blocks that overlap disagree in nearly every byte. The
// word's constants are those of SplitMix64 (Steele, Lea and Flood, 2014).
std::uint64_t pattern_word(std::uint32_t event, std::uint64_t word) {
  std::uint64_t mixed = (std::uint64_t{event} << 32) + word + 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  return mixed ^ (mixed >> 27);
}

[[noreturn]] void broken(const Session& session, std::uint32_t event, const char* how) {
  SafeText reason;
  reason << "the allocator " << session.allocator << " is broken: the block of event " << event << " " << how;
  fail_run(reason);
}

void check_alignment(const Session& session, const void* block, std::uint64_t size, std::uint32_t event,
                     std::uint64_t asked) {
  if (block == nullptr) return;
  // A block shorter than 16 bytes need only be aligned for the objects that fit into it.
  const std::uint64_t natural = std::min<std::uint64_t>(std::bit_floor(std::max<std::uint64_t>(size, 1)), 16);
  const std::uint64_t alignment = asked > (1u << natural_alignment_log2) ? asked : natural;
  if (reinterpret_cast<std::uintptr_t>(block) % alignment != 0)
    broken(session, event, "is not aligned as it was asked for");
}

void check_zeroed(const Session& session, const void* block, std::uint64_t size, std::uint32_t event) {
  const auto* bytes = static_cast<const unsigned char*>(block);
  if (block != nullptr && std::any_of(bytes, bytes + size, [](unsigned char byte) { return byte != 0; })) {
    broken(session, event, "was asked for zeroed and is not");
  }
}

}  // namespace

void fill_pattern(const Slot& slot, std::uint32_t event) {
  auto* bytes = static_cast<unsigned char*>(slot.block);
  if (bytes == nullptr) return;
  for (std::uint64_t at = 0; at < slot.size; at += 8) {
    const std::uint64_t word = pattern_word(event, at);
    std::memcpy(bytes + at, &word, std::min<std::uint64_t>(8, slot.size - at));
  }
}

void check_pattern(const Session& session, const Slot& slot, std::uint64_t bytes, std::uint32_t event) {
  const auto* block = static_cast<const unsigned char*>(slot.block);
  if (block == nullptr) return;
  for (std::uint64_t at = 0; at < bytes; at += 8) {
    const std::uint64_t word = pattern_word(event, at);
    if (std::memcmp(block + at, &word, std::min<std::uint64_t>(8, bytes - at)) != 0) {
      broken(session, event, "lost its contents: another block overlaps it, or a reallocate did not keep them");
    }
  }
}

void drive_and_verify(Session& session, ReplayThread& thread) {
  const by_adapter& calls = *session.adapter;
  JournalOrder order(session, thread);
  std::uint64_t plan_ns = 0;
  std::uint64_t published = 0;
  for (std::uint64_t i = 0;; ++i) {
    if (i == published) {
      published = await_records(thread, i);
      if (i == published) break;
    }
    const Record& record = thread.record(i);
    const std::uint64_t size = record.size();
    if (record.kind == kind_pause) {
      plan_ns += size;
      thread.progress.done.store(i + 1, std::memory_order_release);
      continue;
    }
    plan_ns += record.delta_ns;
    if (session.in_order) order.come_to(record.event);
    if (session.ticks_per_plan_ns != 0) {
      const std::uint64_t due =
          session.clock_start + static_cast<std::uint64_t>(static_cast<double>(plan_ns) * session.ticks_per_plan_ns);
      thread.progress.due.store(due, std::memory_order_relaxed);
      wait_until(due, session.sleep_lead, session.ticks_per_ns);
    }
    if (session.in_order) order.await(record.event);
    Slot& slot = session.slots[record.order.slot];
    if (record.order.after != none && slot.done.load(std::memory_order_acquire) != record.order.after) {
      ++thread.order_waits;
      wait_for_event(slot, record.order.after, session.ticks_per_ns);
    }
    const std::uint32_t giver = slot.done.load(std::memory_order_relaxed);
    const std::size_t alignment = std::size_t{1} << record.alignment_log2;
    const auto kind = static_cast<Kind>(record.kind);
    {
      const auto lock = session.locked ? std::unique_lock(session.lock) : std::unique_lock<std::mutex>();
      const std::uint64_t old_size = slot.size;
      std::uint64_t live_change = size;
      std::uint64_t block_change = kind == Kind::reallocate ? 0 : 1;
      if (kind == Kind::free) {
        check_pattern(session, slot, slot.size, giver);
        release_block(session, slot);
        live_change = 0 - size;
        block_change = 0 - block_change;
      } else {
        if (kind == Kind::reallocate) check_pattern(session, slot, old_size, giver);
        void* block = kind == Kind::allocate          ? calls.allocate(size)
                      : kind == Kind::allocate_zeroed ? calls.allocate_zeroed(size)
                      : kind == Kind::reallocate
                          ? calls.reallocate(slot.block, old_size, std::size_t{1} << slot.alignment_log2, size)
                          : calls.allocate_aligned(alignment, size);
        if (block == nullptr && size != 0) out_of_memory(session, record.event, size);
        slot.block = block;
        slot.size = size;
        slot.giver = static_cast<std::uint16_t>(thread.index);
        slot.alignment_log2 = record.alignment_log2;
        check_alignment(session, block, size, record.event, alignment);
        if (kind == Kind::allocate_zeroed) check_zeroed(session, block, size, record.event);
        if (kind == Kind::reallocate) {
          check_pattern(session, slot, std::min(old_size, size), giver);
          live_change -= old_size;
        }
        fill_pattern(slot, record.event);
      }
      thread.progress.blocks.fetch_add(block_change, std::memory_order_relaxed);
      thread.progress.live.store(thread.progress.live.load(std::memory_order_relaxed) + live_change,
                                 std::memory_order_relaxed);
    }
    slot.done.store(record.event, std::memory_order_release);
    thread.progress.done.store(i + 1, std::memory_order_release);
  }
  order.leave();
  thread.end_ticks = base::ticks();
}

}  // namespace blockyard::replay
