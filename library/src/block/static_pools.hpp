// What reports and tests ask of the process-wide pools.
#pragma once

#include <cstddef>
#include <cstdint>

#include "blockyard/block.h"

namespace blockyard::block {

/// The figures of a slot, all threads together, of slightly different moments. O(slabs of the process).
by_block_statistics static_slot_statistics(std::uint32_t slot, std::size_t stride);

/// The stride of a slot, bytes; 0 for an unused slot.
std::size_t static_stride(std::uint32_t slot);

/// Whether any thread ever had a block of the slot.
bool static_slot_in_use(std::uint32_t slot);

/// The invariant walker over the calling thread's pools. O(blocks).
bool static_invariants_hold();

}  // namespace blockyard::block
