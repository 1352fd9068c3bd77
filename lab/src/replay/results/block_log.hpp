// Where the blocks lie that are alive when the clock has stopped: the rows of blocks.npy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "replay/results/npy.hpp"
#include "replay/run/process_memory.hpp"
#include "replay/run/session.hpp"

namespace blockyard::replay {

inline constexpr const char* block_fields = "[('address', '<u8'), ('size', '<u8'), ('event', '<u4')]";

#pragma pack(push, 1)
struct BlockRow {
  std::uint64_t address;
  std::uint64_t size;   ///< bytes asked for
  std::uint32_t event;  ///< that gave the block
};
#pragma pack(pop)
static_assert(sizeof(BlockRow) == 20);

/// Takes its memory, 20 bytes for each slot, when it is constructed: what is resident up to then is the lab's own.
class BlockLog {
 public:
  explicit BlockLog(std::uint32_t slots)
      : slots_(slots), rows_(std::size_t{slots} * sizeof(BlockRow), PopulatedMemory::Pages::ordinary) {}

  /// Call it when the clock has stopped and before anything is freed. O(slots).
  void record(const Session& session) {
    auto* const rows = reinterpret_cast<BlockRow*>(rows_.begin());
    for (const Slot& slot : std::span(session.slots, slots_)) {
      if (slot.block == nullptr) continue;
      rows[count_++] = {reinterpret_cast<std::uintptr_t>(slot.block), slot.size,
                        slot.done.load(std::memory_order_relaxed)};
    }
  }

  /// Writes `folder`/blocks.npy. Throws journal::Error when the disk is full.
  void write(const std::string& folder) const {
    write_npy(folder + "/blocks.npy", block_fields,
              std::span(reinterpret_cast<const BlockRow*>(rows_.begin()), count_));
  }

 private:
  std::uint32_t slots_;
  PopulatedMemory rows_;
  std::size_t count_ = 0;
};

}  // namespace blockyard::replay
