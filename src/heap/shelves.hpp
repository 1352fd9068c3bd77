// Protocol 4: full and empty magazines of one size class, which threads hand to one another.
//
// Each core puts them down in a corner of its own and looks there first, then in the others' in turn: blocks come back
// to the core whose cache holds them while it has any to give, and threads of two cores write the same line only where
// they have to. A corner is two stacks (index_stack.hpp), for which there is no ABA; whoever was moved to another core
// between its question and its push or pop uses the wrong corner, which is as good.
//
// `filled` spares the others' corners where nothing was ever put down: 0 says that no full magazine is to be looked
// for. It is a hint only. A thread that puts one down raises it to 2 afterwards; who empties the corners lowers it by
// one each time that it finds none, so that a magazine whose giver had read 2 just before is found the next time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "heap/index_stack.hpp"

namespace blockyard::heap {

template <class Atomics = StandardAtomics>
struct Shelves {
  using Word = typename Atomics::template atomic<std::uint32_t>;

  struct alignas(64) Corner {
    IndexStack<Atomics> full;
    IndexStack<Atomics> empty;
  };

  template <std::size_t count, class Link>
  static void give_full(std::array<Corner, count>& corners, Word& filled, unsigned here, std::uint32_t index,
                        Link&& link) {
    corners[here].full.push(index, link);
    if (filled.load(std::memory_order_relaxed) != 2) {
      filled.store(2, std::memory_order_relaxed);
    }
  }

  /// A full magazine, of this corner if there is one; 0: there is none. Lock-free.
  template <std::size_t count, class Link>
  static std::uint32_t take_full(std::array<Corner, count>& corners, const Word& filled, unsigned here, Link&& link) {
    if (filled.load(std::memory_order_relaxed) == 0) {
      return 0;
    }
    for (unsigned away = 0; away < count; ++away) {
      if (const std::uint32_t index = corners[(here + away) % count].full.pop(link); index != 0) {
        return index;
      }
    }
    return 0;
  }

  template <std::size_t count, class Link>
  static void give_empty(std::array<Corner, count>& corners, unsigned here, std::uint32_t index, Link&& link) {
    corners[here].empty.push(index, link);
  }

  /// Likewise an empty one.
  template <std::size_t count, class Link>
  static std::uint32_t take_empty(std::array<Corner, count>& corners, unsigned here, Link&& link) {
    for (unsigned away = 0; away < count; ++away) {
      if (const std::uint32_t index = corners[(here + away) % count].empty.pop(link); index != 0) {
        return index;
      }
    }
    return 0;
  }

  /// What whoever empties the corners says when it found no full magazine. One thread at a time.
  static void found_none(Word& filled) {
    std::uint32_t seen = filled.load(std::memory_order_relaxed);
    if (seen != 0) {
      filled.compare_exchange_strong(seen, seen - 1, std::memory_order_relaxed, std::memory_order_relaxed);
    }
  }
};

}  // namespace blockyard::heap
