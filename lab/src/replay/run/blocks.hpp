// What is done to blocks outside of the measured calls: the preamble, and what is left when the clock has stopped.
#pragma once

#include <cstdint>

#include "replay/run/session.hpp"

namespace blockyard::replay {

/// Restores the thread's preamble block `op` into its slot. Ends the run when the allocator has no memory.
void restore_block(Session& session, ReplayThread& thread, const Op& op);

/// Frees one block.
void release_block(Session& session, Slot& slot);

/// Gives each thread a chain of the blocks that it allocated and nobody freed. With `verify`, checks their contents.
void chain_leftovers(Session& session, std::uint32_t slots);

/// Ends the run: the allocator gave no memory for `event`.
[[noreturn]] void out_of_memory(const Session& session, std::uint32_t event, std::uint64_t size);

}  // namespace blockyard::replay
