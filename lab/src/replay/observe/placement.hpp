// Where an allocator puts blocks is part of its cost: the program pays for it later, when it walks them.
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

/// The blocks that are alive when the clock has stopped, including those of the preamble.
struct Rounding {
  std::uint64_t blocks = 0;
  std::uint64_t asked_bytes = 0;
  std::uint64_t usable_bytes = 0;
  std::uint64_t resident_bytes = 0;  ///< of what is usable beyond what was asked for: the rest takes no memory
};

/// The usable sizes that the allocator reports for its live blocks, and what the kernel (mincore) says of the pages
/// beyond what was asked for. None where the allocator reports nothing. Call it when the clock has stopped.
std::optional<Rounding> rounding_of_live_blocks(const Session& session, std::uint32_t slots,
                                                std::size_t (*usable_size)(void*));

/// Reads the run's live blocks in the order of their allocation: one byte of each cache line, but only the first 4096
/// bytes of a large block. Call it when the clock has stopped and before anything is freed; it maps memory for itself.
/// The first walk finds the caches as the run left them, the later ones as the blocks fill them.
Walk walk_fresh_blocks(const Session& session, std::uint32_t slots);

}  // namespace blockyard::replay
