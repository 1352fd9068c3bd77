// What reports and tests ask of the process-wide pools.
#pragma once

#include <cstddef>
#include <cstdint>

#include "blockyard/block.h"

namespace blockyard::block {

/// All threads together, at about this moment. O(slabs of the process).
by_block_statistics static_slot_statistics(std::uint32_t slot, std::size_t stride);

/// Bytes from one block to the next; 0 for a slot that no stride has.
std::size_t static_stride(std::uint32_t slot);

/// Whether any thread ever had a block of the slot.
bool static_slot_in_use(std::uint32_t slot);

/// The invariant walker over the calling thread's pools. O(blocks).
bool static_invariants_hold();

}  // namespace blockyard::block
