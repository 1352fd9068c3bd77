// What an event's pointers and threads are called in a text that is written.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "journal/event.hpp"
#include "journal/flat_map.hpp"

namespace blockyard::journal {

/// The journal's own pointers where it keeps them; otherwise made-up ones, unique for each block.
class WrittenPointers {
 public:
  explicit WrittenPointers(bool are_kept) : are_kept_(are_kept) {}

  /// Of the block that the event gives.
  std::uint64_t given(const Event& event) {
    if (!are_kept_) return made_up(event.block);
    addresses_.insert(event.block + 1, event.address);
    return event.address;
  }
  /// Of a block that ends. Throws Error.
  std::uint64_t taken(std::uint64_t block) {
    if (!are_kept_) return made_up(block);
    std::uint64_t address = 0;
    if (!addresses_.take(block + 1, address)) throw Error(freed_but_not_live(block));
    return address;
  }

 private:
  // 16 bytes apart, as malloc's would be.
  static constexpr std::uint64_t made_up(std::uint64_t block) { return (block + 1) * 16; }

  bool are_kept_;
  FlatMap<std::uint64_t> addresses_;  ///< block + 1 -> its address, while it lives
};

/// Each thread's id, or the next free number: kernels use ids again, lines must not.
class WrittenThreads {
 public:
  std::size_t size() const { return ids_.size(); }
  std::uint64_t operator[](std::size_t index) const { return ids_[index]; }
  std::uint64_t add(const Thread& thread) {
    std::uint64_t id = thread.id;
    while (!used_.insert(id).second) ++id;
    ids_.push_back(id);
    return id;
  }

 private:
  std::vector<std::uint64_t> ids_;
  std::unordered_set<std::uint64_t> used_;
};

}  // namespace blockyard::journal
