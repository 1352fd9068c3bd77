// The blocks that are alive. Most die young: those given last lie in a ring, where a block's number says its place, and
// only what lives on when the ring comes round goes into a hash table.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "journal/flat_map.hpp"

namespace blockyard::live {

struct LiveBlock {
  std::uint64_t size;
  std::uint32_t stack;
  std::uint32_t tag;
};

/// Blocks come in the order of their numbers, without gaps. O(1). Not thread-safe. Memory: 16 MiB and 24 bytes for each
/// block that lives long.
class LiveBlocks {
 public:
  void add(std::uint64_t number, const LiveBlock& block) {
    LiveBlock& place = ring_[number % young];
    if (place.size != gone) old_.insert(number - young + 1, place);
    place = block;
    next_ = number + 1;
  }

  /// Moves the block into `block`; false where it is not alive.
  bool take(std::uint64_t number, LiveBlock& block) {
    if (!is_young(number)) return old_.take(number + 1, block);
    if (number >= next_) return false;
    LiveBlock& place = ring_[number % young];
    block = place;
    place.size = gone;
    return block.size != gone;
  }

  /// Null where it is not alive, or not given yet.
  const LiveBlock* find(std::uint64_t number) {
    if (!is_young(number)) return old_.find(number + 1);
    const LiveBlock& place = ring_[number % young];
    return number < next_ && place.size != gone ? &place : nullptr;
  }

  /// Some events before add().
  void prefetch_add(std::uint64_t number) const {
    if (ring_[number % young].size != gone) old_.prefetch<4>(number - young + 1);
  }
  /// Some events before take().
  void prefetch_take(std::uint64_t number) const {
    if (!is_young(number)) old_.prefetch<4>(number + 1);
  }

 private:
  /// A game's journal takes half the time of a ring of 2^16, whose blocks more often outlive it.
  static constexpr std::uint64_t young = std::uint64_t{1} << 20;
  static constexpr std::uint64_t gone = std::numeric_limits<std::uint64_t>::max();

  bool is_young(std::uint64_t number) const { return number + young >= next_; }

  std::vector<LiveBlock> ring_ = std::vector<LiveBlock>(young, LiveBlock{gone, 0, 0});
  journal::FlatMap<LiveBlock> old_{1U << 16};  ///< number + 1
  std::uint64_t next_ = 0;
};

}  // namespace blockyard::live
