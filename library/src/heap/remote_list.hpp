// Protocol 1: frees of a slab's blocks by threads that do not own it.
//
// Any thread pushes a block; only the owner adopts the whole list, in O(1). The word holds the newest block's offset
// and how many there are, so adopting needs no walk to learn the count. Beside it stands the oldest block, the list's
// end, so that appending another list to it needs none either:
//
//   bits 0..31  offset of the newest block in the slab, in 16-byte units, plus 1 (0: the list is empty)
//   bits 32..63 number of blocks in the list
//
// A push that finds the list empty is the oldest; it must announce the slab to its owner (pending_stack.hpp). Exactly
// one push of those between two adoptions does, so the oldest is written once a list, before its announcement. There is
// no ABA: a pusher writes the link into a block that is its own until the exchange succeeds, and the owner takes the
// list only as a whole.
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
  std::uint32_t last;   ///< likewise
  std::uint32_t count;
};

template <class Atomics = StandardAtomics>
struct RemoteList {
  using Word = typename Atomics::template atomic<std::uint64_t>;
  using Oldest = typename Atomics::template atomic<std::uint32_t>;

  /// Pushes the block `unit` (16-byte units plus 1). `set_link(next)` stores the block's link before it is published.
  /// True when the list was empty: the caller must announce the slab. Lock-free; retries only when another thread
  /// succeeded.
  template <class SetLink>
  static bool push(Word& word, Oldest& oldest, std::uint32_t unit, SetLink&& set_link) {
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    for (;;) {
      set_link(static_cast<std::uint32_t>(seen));
      const std::uint64_t wanted = (((seen >> 32) + 1) << 32) | unit;
      // release: the link and all that the program wrote into the block before come before the owner's adoption.
      // acquire: where the list is empty, the owner has read who was the oldest of the one before.
      if (word.compare_exchange_weak(seen, wanted, std::memory_order_acq_rel, std::memory_order_relaxed)) {
        const bool was_empty = static_cast<std::uint32_t>(seen) == 0;
        if (was_empty) {
          oldest.store(unit, std::memory_order_relaxed);
        }
        return was_empty;
      }
    }
  }

  /// Takes the whole list, whose announcement must have been taken before. Owner only; wait-free.
  static RemoteBatch adopt(Word& word, const Oldest& oldest) {
    const std::uint32_t last = oldest.load(std::memory_order_relaxed);
    const std::uint64_t taken = word.exchange(0, std::memory_order_acq_rel);
    return {static_cast<std::uint32_t>(taken), last, static_cast<std::uint32_t>(taken >> 32)};
  }
};

}  // namespace blockyard::heap
