// What reports and tests ask of the process-wide pools.
#pragma once

#include <cstddef>
#include <cstdint>

#include "blockyard/block.h"

namespace blockyard::block {

/// Adds all figures but the stride.
inline void add_statistics(by_block_statistics& sum, const by_block_statistics& one) {
  sum.live_blocks += one.live_blocks;
  sum.live_bytes += one.live_bytes;
  sum.peak_blocks += one.peak_blocks;
  sum.pages += one.pages;
  sum.held_bytes += one.held_bytes;
  sum.free_page_bytes += one.free_page_bytes;
}

/// The figures of a slot, all threads together, of slightly different moments. O(slabs of the process).
by_block_statistics static_slot_statistics(std::uint32_t slot, std::size_t stride);

/// The stride of a slot, bytes; 0 for an unused slot.
std::size_t static_stride(std::uint32_t slot);

/// Whether any thread ever had a block of the slot.
bool static_slot_in_use(std::uint32_t slot);

/// The invariant walker over the calling thread's pools. O(blocks).
bool static_invariants_hold();

}  // namespace blockyard::block
