// Where an allocator puts blocks is part of its price: the program pays it later, when it walks them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "replay/run/session.hpp"

namespace blockyard::replay {

struct Walk {
  std::uint64_t blocks = 0;
  double ns_a_block = 0;  ///< median of five walks
};

/// The blocks that are alive when the clock has stopped, those of the preamble included.
struct Rounding {
  std::uint64_t blocks = 0;
  std::uint64_t asked_bytes = 0;
  std::uint64_t usable_bytes = 0;
  std::uint64_t resident_bytes = 0;  ///< of what is usable beyond what was asked for: the rest takes no memory
};

/// What the allocator says of its live blocks, and the kernel (mincore) of the pages behind what was asked for; none
/// where the allocator says nothing. After the clock has stopped.
std::optional<Rounding> rounding_of_live_blocks(const Session& session, std::uint32_t slots,
                                                std::size_t (*usable_size)(void*));

/// Reads the blocks that the run allocated and nobody has freed, in the order of their allocation: one byte of each
/// cache line, of a large block only the first 4096 bytes. After the clock has stopped, before anything is freed; maps
/// memory for itself. The first walk finds the caches as the run left them, the later ones as the blocks fill them.
Walk walk_fresh_blocks(const Session& session, std::uint32_t slots);

}  // namespace blockyard::replay
