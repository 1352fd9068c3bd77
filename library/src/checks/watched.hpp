// Watched processes: every allocation and free of a block takes the slow path, which checks or announces it, however
// the calling code was compiled. A process is watched when it has checks (checks/poison.hpp), or when a recorder
// listens to its blocks (base/observer.hpp, in builds with BLOCKYARD_OBSERVED). Decided once, before the first block.
#pragma once

#include <cstddef>

#include "base/observer.hpp"
#include "checks/poison.hpp"

namespace blockyard::checks {

/// The recorder that listens to blocks, or nullptr.
const base::Observer* listener();
inline bool is_watched() {
  static const bool watched = are_on() || listener() != nullptr;
  return watched;
}

/// Report a block to the recorder, if one listens.
void announce_allocated(const void* block, std::size_t size, std::size_t alignment);
void announce_freed(const void* block);

}  // namespace blockyard::checks
