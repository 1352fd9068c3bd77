// Protocol 1: frees of a slab's blocks by threads that do not own it.
//
// Any thread pushes a block; only the owner adopts the whole list, in O(1). The word holds the newest block's offset
// and how many there are, so adopting needs no walk to learn the count:
//
//   bits 0..31  offset of the newest block in the slab, in 16-byte units, plus 1 (0: the list is empty)
//   bits 32..63 number of blocks in the list
//
// A push that finds the list empty must announce the slab to its owner (pending_stack.hpp); exactly one push of those
// between two adoptions does. There is no ABA: a pusher writes the link into a block that is its own until the exchange
// succeeds, and the owner takes the list only as a whole.
//
// `Atomics` supplies the atomic type, so that the shipped source also compiles against a test scheduler.
#pragma once

#include <atomic>
#include <cstdint>

#include "heap/atomic.hpp"

namespace blockyard::heap {

struct StandardAtomics {
  template <class T>
  using atomic = Atomic<T>;
};

struct RemoteBatch {
  std::uint32_t first;  ///< as in the word: 16-byte units plus 1; 0 when there was none
  std::uint32_t count;
};

template <class Atomics = StandardAtomics>
struct RemoteList {
  using Word = typename Atomics::template atomic<std::uint64_t>;

  /// Pushes the block `unit` (16-byte units plus 1). `set_link(next)` stores the block's link before it is published.
  /// True when the list was empty: the caller must announce the slab. Lock-free; retries only when another thread
  /// succeeded.
  template <class SetLink>
  static bool push(Word& word, std::uint32_t unit, SetLink&& set_link) {
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    for (;;) {
      set_link(static_cast<std::uint32_t>(seen));
      const std::uint64_t wanted = (((seen >> 32) + 1) << 32) | unit;
      // release: the link and all that the program wrote into the block before come before the owner's adoption.
      if (word.compare_exchange_weak(seen, wanted, std::memory_order_release, std::memory_order_relaxed)) {
        return static_cast<std::uint32_t>(seen) == 0;
      }
    }
  }

  /// Takes the whole list. Owner only; wait-free.
  static RemoteBatch adopt(Word& word) {
    const std::uint64_t taken = word.exchange(0, std::memory_order_acquire);
    return {static_cast<std::uint32_t>(taken), static_cast<std::uint32_t>(taken >> 32)};
  }
};

}  // namespace blockyard::heap
