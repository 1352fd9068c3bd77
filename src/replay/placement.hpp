// Where an allocator puts blocks is part of its price: the program pays it later, when it walks them.
#pragma once

#include <cstdint>
#include <span>

#include "replay/session.hpp"

namespace blockyard::replay {

struct Walk {
  std::uint64_t blocks = 0;
  double ns_a_block = 0;  ///< median of five walks
};

/// Reads the blocks that the run allocated and nobody has freed, in the order of their allocation: one byte of each
/// cache line, of a large block only the first 4096 bytes. After the clock has stopped, before anything is freed; maps
/// memory for itself. The first walk finds the caches as the run left them, the later ones as the blocks fill them.
Walk walk_fresh_blocks(const Session& session, std::uint32_t slots);

}  // namespace blockyard::replay
