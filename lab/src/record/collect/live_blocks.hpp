// The blocks that are alive at the point the merge has reached, by address.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "journal/event.hpp"
#include "journal/flat_map.hpp"

namespace blockyard::record {

/// Where an event comes from.
struct Origin {
  std::uint32_t site = journal::no_site;  ///< in the tables of the StackBook
  std::uint32_t tag = 0;                  ///< in the texts of the TagBook
};

struct LiveBlock {
  std::uint64_t size = 0;
  std::uint64_t sequence = 0;            ///< grows with each block given: the original order
  std::uint64_t id = journal::no_block;  ///< dense id in the journal being written, if one is
  std::uint32_t thread = 0;              ///< session's number of the thread that allocated
  Origin origin;                         ///< of the allocation
  std::uint8_t alignment_log2 = 0;       ///< of allocate_aligned
  journal::Kind kind = journal::Kind::allocate;
};
static_assert(sizeof(LiveBlock) == 40);

/// One address space's live blocks: malloc's or the engine's.
class LiveBlocks {
 public:
  using Entry = std::pair<std::uint64_t, LiveBlock>;  ///< address, block

  bool contains(std::uint64_t address) const { return const_cast<LiveBlocks*>(this)->blocks_.find(address) != nullptr; }
  LiveBlock* find(std::uint64_t address) { return blocks_.find(address); }
  /// Adds a block, as the newest, at an address that must not be live.
  void add(std::uint64_t address, LiveBlock block) {
    block.sequence = next_sequence_++;
    put_back(address, block);
  }
  /// Puts back a block that take() gave, with its place in the original order.
  void put_back(std::uint64_t address, const LiveBlock& block) {
    blocks_.insert(address, block);
    bytes_ += block.size;
    if (bytes_ > most_bytes_) most_bytes_ = bytes_;
  }
  std::optional<LiveBlock> take(std::uint64_t address) {
    LiveBlock block;
    if (!blocks_.take(address, block)) return std::nullopt;
    bytes_ -= block.size;
    return block;
  }
  /// Brings what is known of an address into the cache. Three slots, as most blocks are taken out again: of a program
  /// with 100,000 live blocks each free waited for the second and the third, a sixth of the collector's time.
  void prefetch(std::uint64_t address) const { blocks_.prefetch<3>(address); }
  std::size_t size() const { return blocks_.size(); }
  /// The most that the blocks held at a time.
  std::uint64_t most_bytes() const { return most_bytes_; }

  /// All of them in the order of their allocation. O(n log n).
  std::vector<Entry> in_order() const;
  /// Replaces all blocks by what in_order() of another gave.
  void assign(const std::vector<Entry>& entries);

 private:
  journal::FlatMap<LiveBlock> blocks_;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t most_bytes_ = 0;
};

}  // namespace blockyard::record
