// Protocol 1, second half: slabs that announce remote frees to their owner.
//
// Any thread pushes, only the owner takes, and always the whole chain: no ABA. A slab is in at most one chain at a
// time, because it is announced only by the push that found its remote list empty, and the owner empties that list only
// after it has taken the announcement. The same rule keeps a slab from being given back while an announcement is on its
// way: the blocks of its remote list still count as used until then.
#pragma once

#include <atomic>
#include <cstdint>

#include "heap/remote_list.hpp"

namespace blockyard::heap {

template <class Atomics = StandardAtomics>
struct PendingStack {
  using Word = typename Atomics::template atomic<std::uint32_t>;

  /// Announces slab `index` (not 0). Lock-free; any thread.
  static void push(Word& head, std::uint32_t index, Word& link) {
    std::uint32_t seen = head.load(std::memory_order_relaxed);
    do {
      link.store(seen, std::memory_order_relaxed);
      // release: the link, and the remote list that the announcement is about, come before the owner's take.
    } while (!head.compare_exchange_weak(seen, index, std::memory_order_release, std::memory_order_relaxed));
  }

  /// The newest announced slab, its link leading to the rest; 0 when there is none. Owner only; wait-free.
  static std::uint32_t take(Word& head) {
    if (head.load(std::memory_order_relaxed) == 0) {
      return 0;
    }
    return head.exchange(0, std::memory_order_acquire);
  }
};

}  // namespace blockyard::heap
