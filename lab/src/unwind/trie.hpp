// The stacks that a thread has met, as a trie from the thread's first frame to its last.
#pragma once

#include <cstddef>
#include <cstdint>

namespace blockyard::unwind {

inline constexpr std::uint32_t no_node = 0;

/// The digest of a path from the root: that of the path before its last frame, mixed with the frame. Two of a million
/// paths share their 64 bits once in some ten million programs.
constexpr std::uint64_t digest_of_path(std::uint64_t before, std::uint64_t frame) {
  __extension__ using Wide = unsigned __int128;
  const auto product = static_cast<Wide>(before ^ frame ^ 0xa0761d6478bd642f) * 0xe7037ed1a0b428db;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// Numbers paths from 1 on, in the order in which they were met, so that the whole of a stack takes one look-up. Its
/// memory comes from the system.
class Trie {
 public:
  /// The number of the path with this digest, or no_node.
  std::uint32_t find(std::uint64_t digest) const {
    if (table_ == nullptr) return no_node;
    for (std::size_t place = digest & mask_;; place = (place + 1) & mask_) {
      if (table_[place].digest == digest || table_[place].node == no_node) return table_[place].node;
    }
  }
  /// Numbers a path that has none. no_node when there are too many or there is no memory: then clear() it. A system
  /// call where the table doubles.
  std::uint32_t add(std::uint64_t digest);
  void clear();

 private:
  struct Entry {
    std::uint64_t digest;
    std::uint32_t node;
  };
  static constexpr std::uint32_t most_nodes = 1u << 20;
  static constexpr std::size_t first_capacity = 1024;

  bool grow();

  Entry* table_ = nullptr;
  std::size_t mask_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace blockyard::unwind
