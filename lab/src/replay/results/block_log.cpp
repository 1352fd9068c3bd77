#include "replay/results/block_log.hpp"

#include <span>

#include "replay/results/npy.hpp"

namespace blockyard::replay {
namespace {

constexpr const char* block_fields = "[('address', '<u8'), ('size', '<u8'), ('event', '<u4')]";

#pragma pack(push, 1)
struct BlockRow {
  std::uint64_t address;
  std::uint64_t size;   ///< bytes asked for
  std::uint32_t event;  ///< that gave the block
};
#pragma pack(pop)
static_assert(sizeof(BlockRow) == 20);

}  // namespace

BlockLog::BlockLog(std::uint32_t slots)
    : slots_(slots), rows_(std::size_t{slots} * sizeof(BlockRow), PopulatedMemory::Pages::ordinary) {}

void BlockLog::record(const Session& session) {
  auto* const rows = reinterpret_cast<BlockRow*>(rows_.begin());
  count_ = 0;
  for (const Slot& slot : std::span(session.slots, slots_)) {
    if (slot.block == nullptr) continue;
    rows[count_++] = {reinterpret_cast<std::uintptr_t>(slot.block), slot.size,
                      slot.done.load(std::memory_order_relaxed)};
  }
}

void BlockLog::write(const std::string& folder) const {
  const auto* const rows = reinterpret_cast<const BlockRow*>(rows_.begin());
  write_npy(folder + "/blocks.npy", block_fields, std::span(rows, count_));
}

}  // namespace blockyard::replay
