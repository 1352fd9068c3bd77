// The replay that checks the allocator instead of timing it.
#pragma once

#include <cstdint>

#include "replay/run/session.hpp"

namespace blockyard::replay {

/// As drive(), at the same pace but untimed: fills every block with a pattern of its own and checks at the block's end
/// that the pattern is whole. Two live blocks that overlap, a reallocate that loses contents, a calloc that is not zero
/// and an alignment that is not kept end the run with a sentence.
void drive_and_verify(Session& session, ReplayThread& thread);

/// Fills a fresh block with its pattern. `event` gave the block.
void fill_pattern(const Slot& slot, std::uint32_t event);
/// Checks the first `bytes` of it.
void check_pattern(const Session& session, const Slot& slot, std::uint64_t bytes, std::uint32_t event);

}  // namespace blockyard::replay
