// Where the blocks lie that are alive when the clock has stopped: the rows of blocks.npy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "replay/run/process_memory.hpp"
#include "replay/run/session.hpp"

namespace blockyard::replay {

/// Takes its memory, 20 bytes for each slot, when it is constructed: what is resident up to then is the lab's own.
class BlockLog {
 public:
  explicit BlockLog(std::uint32_t slots);
  /// Call it when the clock has stopped and before anything is freed. O(slots).
  void record(const Session& session);
  /// Writes `folder`/blocks.npy. Throws journal::Error when the disk is full.
  void write(const std::string& folder) const;

 private:
  std::uint32_t slots_;
  PopulatedMemory rows_;
  std::size_t count_ = 0;
};

}  // namespace blockyard::replay
