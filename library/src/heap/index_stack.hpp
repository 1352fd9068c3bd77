// A stack of table indices that any thread pushes to and pops from: ready slabs, and parked heaps.
//
// Treiber's stack ("Systems Programming: Coping with Parallelism", 1986) over indices, with a counter beside the head
// that every successful change raises: a popper that was asleep while its head went and came back sees another counter.
// The counter has 32 bits; a popper would have to sleep through exactly 2^32 changes to be fooled.
//
// The links live in a table of atomics that is never unmapped, so reading the link of an index that another thread has
// popped meanwhile is harmless: the exchange then fails.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/atomic.hpp"

namespace blockyard::heap {

using base::Atomic;
using base::StandardAtomics;

template <class Atomics = StandardAtomics>
class IndexStack {
 public:
  /// Pushes `index` (not 0). `link` gives the atomic link of an index. Lock-free.
  template <class Link>
  void push(std::uint32_t index, Link&& link) {
    std::uint64_t seen = head_.load(std::memory_order_relaxed);
    std::uint64_t next_head;
    do {
      link(index).store(static_cast<std::uint32_t>(seen), std::memory_order_relaxed);
      next_head = next_version(seen) | index;
      // release: what the pusher wrote about the index comes before its popper.
    } while (!head_.compare_exchange_weak(seen, next_head, std::memory_order_release, std::memory_order_relaxed));
  }

  /// The newest index, or 0 when the stack is empty. Lock-free.
  template <class Link>
  std::uint32_t pop(Link&& link) {
    std::uint64_t seen = head_.load(std::memory_order_acquire);
    for (;;) {
      const auto index = static_cast<std::uint32_t>(seen);
      if (index == 0) {
        return 0;
      }
      const std::uint32_t next = link(index).load(std::memory_order_relaxed);
      if (head_.compare_exchange_weak(seen, next_version(seen) | next, std::memory_order_acquire,
                                      std::memory_order_acquire)) {
        return index;
      }
    }
  }

 private:
  static std::uint64_t next_version(std::uint64_t word) { return ((word >> 32) + 1) << 32; }

  typename Atomics::template atomic<std::uint64_t> head_{0};
};

}  // namespace blockyard::heap
