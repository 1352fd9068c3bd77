// Frees of a slab's blocks by threads that do not own it, for the heap and for the static pools.
//
//   RemoteList    any thread pushes a block onto its slab's list; the owner adopts the whole list
//   PendingStack  any thread announces a slab to the slab's owner; the owner takes all announced slabs
//
// The push that finds the list empty must announce the slab, so exactly one does between two adoptions. The owner
// adopts only lists whose announcement it has taken. So:
//
//  - A slab is in at most one stack at a time.
//  - The blocks of its list count as used until then. So a slab is not given back while its announcement is on its way.
//
// A slab may change its owner meanwhile, with its blocks. The old owner then finds the slab in its stack, and passes
// the announcement on.
//
// There is no ABA: a pusher writes the link into a block, or a slab, that is its own until the exchange succeeds, and
// lists and stacks are taken only as a whole.
//
// `Atomics` supplies the atomic type, so that the shipped source also compiles against a test scheduler.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/atomic.hpp"

namespace blockyard::base {

struct RemoteBatch {
  std::uint32_t first;  ///< the newest block, as push() got it; 0 when there was none
  std::uint32_t last;   ///< the oldest block, which ends the list
  std::uint32_t count;
};

/// A list is a word: in the low half the newest block, in the high half how many there are, so that nobody walks it.
/// Beside it stands the oldest block, so that another list can be appended without a walk, too.
template <class Atomics = StandardAtomics>
struct RemoteList {
  using Word = typename Atomics::template atomic<std::uint64_t>;
  using Oldest = typename Atomics::template atomic<std::uint32_t>;

  static std::uint32_t count_of(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }

  /// Pushes `block`, a number within its slab, not 0. `set_link(next)` stores the block's link before it is published.
  /// True when the list was empty: the caller must announce the slab. Lock-free; retries only when another thread
  /// succeeded.
  template <class SetLink>
  static bool push(Word& word, Oldest& oldest, std::uint32_t block, SetLink&& set_link) {
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    for (;;) {
      set_link(static_cast<std::uint32_t>(seen));
      const std::uint64_t wanted = (((seen >> 32) + 1) << 32) | block;
      // release: the link and all that the program wrote into the block before come before the owner's adoption.
      // acquire: where the list is empty, the owner has read who was the oldest of the one before.
      if (word.compare_exchange_weak(seen, wanted, std::memory_order_acq_rel, std::memory_order_relaxed)) {
        const bool was_empty = static_cast<std::uint32_t>(seen) == 0;
        if (was_empty) {
          oldest.store(block, std::memory_order_relaxed);
        }
        return was_empty;
      }
    }
  }

  /// Takes the whole list, whose announcement must have been taken before. Owner only; wait-free.
  static RemoteBatch adopt(Word& word, const Oldest& oldest) {
    const std::uint32_t last = oldest.load(std::memory_order_relaxed);
    const std::uint64_t taken = word.exchange(0, std::memory_order_acq_rel);
    return {static_cast<std::uint32_t>(taken), last, count_of(taken)};
  }
};

template <class Atomics = StandardAtomics>
struct PendingStack {
  using Word = typename Atomics::template atomic<std::uint32_t>;

  /// Announces slab `index`, not 0, whose link to the next announced slab is `link`. Lock-free; any thread.
  static void push(Word& head, std::uint32_t index, Word& link) {
    std::uint32_t seen = head.load(std::memory_order_relaxed);
    do {
      link.store(seen, std::memory_order_relaxed);
      // release: the link, and the remote list that the announcement is about, come before the owner's take.
    } while (!head.compare_exchange_weak(seen, index, std::memory_order_release, std::memory_order_relaxed));
  }

  /// The newest announced slab, its link leading to the rest; 0 when there is none. Owner only; wait-free. Read a
  /// slab's link before adopting its list: from then on another thread may announce the slab again and write the link.
  static std::uint32_t take(Word& head) {
    if (head.load(std::memory_order_relaxed) == 0) {
      return 0;
    }
    return head.exchange(0, std::memory_order_acquire);
  }
};

}  // namespace blockyard::base
