#include "replay/run/verify.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "journal/event.hpp"
#include "replay/run/blocks.hpp"
#include "replay/run/failure.hpp"
#include "replay/run/thread_routes.hpp"
#include "replay/run/turn.hpp"

namespace blockyard::replay {
namespace {

using journal::Kind;

// The word depends on the event that gave the block and on the offset: two blocks that overlap differ in nearly every
// byte. The constants are those of SplitMix64 (Steele, Lea and Flood, 2014).
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

void* call_allocator(const by_adapter& calls, const Record& record, const Slot& slot) {
  const std::uint64_t size = record.size();
  switch (static_cast<Kind>(record.kind)) {
    case Kind::allocate:
      return calls.allocate(size);
    case Kind::allocate_zeroed:
      return calls.allocate_zeroed(size);
    case Kind::reallocate:
      return calls.reallocate(slot.block, slot.size, std::size_t{1} << slot.alignment_log2, size);
    default:
      return calls.allocate_aligned(std::size_t{1} << record.alignment_log2, size);
  }
}

// Whether the event is of a routed slot, and then it is carried out and `block` is what the slot has.
bool rerouted(ThreadRoutes* routes, const Record& record, const Slot& slot, void*& block) {
  const std::uint32_t route = routes == nullptr ? none : routes->route_of(slot);
  if (route == none) return false;
  block = routes->carry_out(route, record, slot, [](auto, auto call) { call(); });
  return true;
}

// Calls the allocator for an event that gives a block, and checks what it gave.
void give(Session& session, ReplayThread& thread, ThreadRoutes* routes, const Record& record, Slot& slot) {
  const auto kind = static_cast<Kind>(record.kind);
  const std::uint64_t size = record.size();
  const std::uint64_t old_size = slot.size;
  const std::uint32_t old_giver = slot.done.load(std::memory_order_relaxed);
  const std::size_t alignment = std::size_t{1} << record.alignment_log2;
  if (kind == Kind::reallocate) check_pattern(session, slot, old_size, old_giver);
  void* block = nullptr;
  if (!rerouted(routes, record, slot, block)) block = call_allocator(*session.adapter, record, slot);
  if (block == nullptr && size != 0) out_of_memory(session, record.event, size);
  slot.block = block;
  slot.size = size;
  slot.giver = static_cast<std::uint16_t>(thread.index);
  slot.alignment_log2 = record.alignment_log2;
  check_alignment(session, block, size, record.event, alignment);
  if (kind == Kind::allocate_zeroed) check_zeroed(session, block, size, record.event);
  if (kind == Kind::reallocate) check_pattern(session, slot, std::min(old_size, size), old_giver);
  fill_pattern(slot, record.event);
}

void check_event(Session& session, ReplayThread& thread, ThreadRoutes* routes, const Record& record, Slot& slot) {
  const auto kind = static_cast<Kind>(record.kind);
  std::uint64_t live = thread.progress.live.load(std::memory_order_relaxed);
  {
    const auto lock = session.lock_if_needed();
    if (kind == Kind::free) {
      check_pattern(session, slot, slot.size, slot.done.load(std::memory_order_relaxed));
      live -= record.size();
      if (!rerouted(routes, record, slot, slot.block)) release_block(session, slot);
    } else {
      if (kind == Kind::reallocate) live -= slot.size;
      live += record.size();
      give(session, thread, routes, record, slot);
    }
  }
  thread.progress.live.store(live, std::memory_order_relaxed);
  if (kind == Kind::free) thread.progress.blocks.fetch_sub(1, std::memory_order_relaxed);
  if (kind != Kind::free && kind != Kind::reallocate) thread.progress.blocks.fetch_add(1, std::memory_order_relaxed);
  slot.done.store(record.event, std::memory_order_release);
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
  if (session.rerouting == nullptr) {
    for_each_event(session, thread,
                   [&](const Record& record, Slot& slot) { check_event(session, thread, nullptr, record, slot); });
    return;
  }
  ThreadRoutes routes(session, thread);
  const auto end_frame = [&](Turn& turn, const Record& record) {
    const bool of_program = record.size() != 0;
    if (of_program) turn.await(record, session.slots[0]);
    ThreadRoutes::end_frame(of_program);
  };
  for_each_event(
      session, thread, [&](const Record& record, Slot& slot) { check_event(session, thread, &routes, record, slot); },
      SpecialOps(routes, end_frame));
}

}  // namespace blockyard::replay
