// Copies the live blocks, for preambles and forks.
#include "record/collect/live_blocks.hpp"

#include <algorithm>

namespace blockyard::record {

std::vector<LiveBlocks::Entry> LiveBlocks::in_order() const {
  std::vector<Entry> entries;
  entries.reserve(blocks_.size());
  blocks_.for_each([&](std::uint64_t address, const LiveBlock& block) { entries.emplace_back(address, block); });
  std::sort(entries.begin(), entries.end(),
            [](const Entry& left, const Entry& right) { return left.second.sequence < right.second.sequence; });
  return entries;
}

void LiveBlocks::assign(const std::vector<Entry>& entries) {
  blocks_ = journal::FlatMap<LiveBlock>();
  next_sequence_ = 0;
  bytes_ = 0;
  for (const auto& [address, block] : entries) add(address, block);
}

}  // namespace blockyard::record
