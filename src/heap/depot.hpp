// Freed blocks that threads hand to one another by the magazine, so that one thread's frees serve another's allocations
// without a look at a slab or at a block: the depot of Bonwick and Adams, "Magazines and Vmem", 2001.
//
// A thread that frees another's block and has no room at hand leaves half of what it holds of the class here; a thread
// that finds none at hand takes one magazine. Two changes of a lock-free stack each (index_stack.hpp), on one cache
// line, for up to 14 blocks. To their slabs these blocks are in use.
//
// Bound: 64 KiB of blocks a class, 40 classes, 2 MiB if all are full. Blocks are taken only of classes that a thread
// lately wanted and found none of, and go back to their slabs when that is three ticks (48 ms) of the janitor's clock
// ago: a level that is freed leaves none here.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "heap/atomic.hpp"
#include "heap/index_stack.hpp"
#include "heap/size_class.hpp"

namespace blockyard::heap {

/// Classes of blocks up to 2 KiB: of longer ones a thread holds too few for a magazine to be worth it.
inline constexpr unsigned depot_classes = 8 + 4 * 8;
static_assert(class_bytes(depot_classes - 1) == 2048);

/// Blocks of a magazine of class `index`: half of what a thread keeps at hand.
constexpr std::uint32_t magazine_blocks(unsigned index) { return at_hand_capacity(index) / 2; }

constexpr std::uint32_t magazines_of(unsigned index) {
  constexpr std::uint32_t bytes_a_class = 64u << 10;
  constexpr std::uint32_t most = 36;
  return std::min(bytes_a_class / (magazine_blocks(index) * class_bytes(index)), most);
}

inline constexpr std::uint32_t magazine_count = [] {
  std::uint32_t count = 0;
  for (unsigned index = 0; index < depot_classes; ++index) {
    count += magazines_of(index);
  }
  return count;
}();

class Depot {
 public:
  static constexpr unsigned classes = depot_classes;
  static constexpr std::uint32_t blocks_of(unsigned index) { return magazine_blocks(index); }

  /// Always full, or empty.
  struct alignas(64) Magazine {
    std::array<void*, most_at_hand / 2> blocks{};
  };

  /// Makes all magazines empty ones, once, before any other call; populates them.
  void initialise();

  /// An empty magazine of the class to be filled, its index; 0: none, or none of the class is wanted. Lock-free.
  std::uint32_t take_empty(unsigned size_class, std::uint16_t tick) {
    Shelf& shelf = shelves_[size_class];
    return is_wanted(shelf, tick) ? shelf.empty.pop(link_) : 0;
  }
  void give_full(unsigned size_class, std::uint32_t index) { shelves_[size_class].full.push(index, link_); }

  /// A full one, its index; 0: there is none, and the class is wanted from now on. Lock-free.
  std::uint32_t take_full(unsigned size_class, std::uint16_t tick) {
    Shelf& shelf = shelves_[size_class];
    const std::uint32_t index = shelf.full.pop(link_);
    // Not written again in the same tick: the line is every thread's.
    if (const std::uint32_t now = std::uint32_t{tick} + 1; shelf.wanted_at.load(std::memory_order_relaxed) != now) {
      shelf.wanted_at.store(now, std::memory_order_relaxed);
    }
    return index;
  }
  void give_empty(unsigned size_class, std::uint32_t index) { shelves_[size_class].empty.push(index, link_); }

  Magazine& magazine(std::uint32_t index) { return magazines_[index]; }

  /// Whether take_empty would find one at the moment.
  bool has_room(unsigned size_class, std::uint16_t tick) const {
    const Shelf& shelf = shelves_[size_class];
    return is_wanted(shelf, tick) && !shelf.empty.empty();
  }

  /// Frees the blocks of classes that nobody wants any more (`all`: of all) into their slabs, at most `most` magazines.
  /// One thread at a time. Returns whether there was any.
  bool drain(std::uint16_t tick, bool all, std::uint32_t most);

  /// Bytes of the blocks that wait here; racy.
  std::uint64_t bytes() const;
  /// Null, or what is broken; nobody may use the heap meanwhile. O(magazines).
  const char* check() const;

 private:
  /// What all threads write of a class, on a line of its own.
  struct alignas(64) Shelf {
    IndexStack<> full;
    IndexStack<> empty;
    Atomic<std::uint32_t> wanted_at{0};  ///< the janitor's tick plus 1; 0: not wanted
  };

  static constexpr std::uint16_t wanted_for = 3;  // ticks

  static bool is_wanted(const Shelf& shelf, std::uint16_t tick) {
    const std::uint32_t at = shelf.wanted_at.load(std::memory_order_relaxed);
    return at != 0 && static_cast<std::uint16_t>(tick + 1 - at) < wanted_for;
  }

  // Calls visit(size_class, magazine) for every full magazine; racy while threads use them, but ends.
  template <class Visit>
  void for_each_full(Visit&& visit) const;

  struct Links {
    std::array<Atomic<std::uint32_t>, magazine_count + 1> next{};
    Atomic<std::uint32_t>& operator()(std::uint32_t index) { return next[index]; }
  };

  std::array<Shelf, classes> shelves_{};
  Links link_;
  std::array<Magazine, magazine_count + 1> magazines_{};  // [0] is none
};

extern constinit Depot depot;

}  // namespace blockyard::heap
