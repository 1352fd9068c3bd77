#include "replay/run/blocks.hpp"

#include "journal/event.hpp"
#include "replay/run/failure.hpp"
#include "replay/run/rerouting.hpp"
#include "replay/run/verify.hpp"

namespace blockyard::replay {

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
  const auto lock = session.lock_if_needed();
  void* block = nullptr;
  if (op.alignment_log2 > natural_alignment_log2) {
    block = calls.allocate_aligned(std::size_t{1} << op.alignment_log2, size);
  } else if (op.kind == static_cast<std::uint8_t>(journal::Kind::allocate_zeroed)) {
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
  if (session.rerouting != nullptr && session.rerouting->release(session, slot)) return;
  const by_adapter& calls = *session.adapter;
  if ((calls.flags & BY_ADAPTER_SIZED_FREE) != 0) {
    calls.free_sized(slot.block, slot.size, std::size_t{1} << slot.alignment_log2);
  } else {
    calls.free(slot.block);
  }
  slot.block = nullptr;
}

void chain_leftovers(Session& session, std::uint32_t slots) {
  if (session.rerouting != nullptr) session.rerouting->surrender_kept(session);
  for (std::uint32_t index = 0; index < slots; ++index) {
    Slot& slot = session.slots[index];
    if (slot.block == nullptr) continue;
    if (session.verify) check_pattern(session, slot, slot.size, slot.done.load(std::memory_order_relaxed));
    ReplayThread& giver = session.threads[slot.giver];
    slot.done.store(giver.chain, std::memory_order_relaxed);
    giver.chain = index;
  }
}

}  // namespace blockyard::replay
