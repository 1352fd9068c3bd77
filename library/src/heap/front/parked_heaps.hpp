// Heaps that wait for a thread.
//
// Two stacks of indices (index_stack.hpp). The background thread sweeps one of them down: it takes a heap, works on it
// as its only owner, and puts it on the other; when nothing is left the two change roles. So every parked heap has its
// turn, however many there are, and a thread that begins gets the one that was used last. Threads leave theirs on the
// stack that is not being swept: those that come and go fast can't keep the background thread from the rest. A heap
// without any block waits apart: it may become an arena. A heap with other threads' blocks in it never may, since
// destroying it would free them.
#pragma once

#include <array>
#include <cstdint>

#include "heap/index_stack.hpp"

namespace blockyard::heap {

template <class Atomics = StandardAtomics>
class ParkedHeaps {
 public:
  /// A thread's heap, with whatever lives in it. Lock-free.
  template <class Link>
  void park(std::uint32_t index, Link&& link) {
    other_side().push(index, link);
  }

  /// The heap parked last, or one without blocks when none is parked; 0: none waits. Lock-free.
  template <class Link>
  std::uint32_t take(Link&& link) {
    if (const std::uint32_t index = other_side().pop(link); index != 0) {
      return index;
    }
    if (const std::uint32_t index = swept_side().pop(link); index != 0) {
      return index;
    }
    return empty_.pop(link);
  }

  /// A heap without blocks, and its way back. Lock-free.
  template <class Link>
  std::uint32_t take_empty(Link&& link) {
    return empty_.pop(link);
  }
  template <class Link>
  void park_empty(std::uint32_t index, Link&& link) {
    empty_.push(index, link);
  }

  /// The next heap to be swept, to be parked again afterwards; 0 ends the round. One thread at a time.
  template <class Link>
  std::uint32_t take_to_sweep(Link&& link) {
    const std::uint32_t index = swept_side().pop(link);
    if (index == 0) {
      side_.store(1 - side_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    return index;
  }

 private:
  // A thread that reads the role just before it changes uses the wrong stack, which is as good.
  IndexStack<Atomics>& swept_side() { return sides_[side_.load(std::memory_order_relaxed)]; }
  IndexStack<Atomics>& other_side() { return sides_[1 - side_.load(std::memory_order_relaxed)]; }

  std::array<IndexStack<Atomics>, 2> sides_;
  IndexStack<Atomics> empty_;
  typename Atomics::template atomic<std::uint32_t> side_{0};  // the stack that is being swept
};

}  // namespace blockyard::heap
