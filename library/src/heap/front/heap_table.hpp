// All heaps of the process: those of threads, those that wait for a thread to begin, and arenas.
#pragma once

#include <array>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/threads.hpp"
#include "heap/front/thread_heap.hpp"
#include "heap/index_stack.hpp"

namespace blockyard::heap {

/// Heaps that wait for a thread: two stacks of indices (index_stack.hpp). The background thread sweeps one of them
/// down: it takes a heap, works on it as its only owner, and puts it on the other; when nothing is left the two change
/// roles. So every parked heap has its turn, however many there are, and a thread that begins gets the one that was
/// used last. Threads leave theirs on the stack that is not being swept: those that come and go fast can't keep the
/// background thread from the rest. A heap without any block waits apart: it may become an arena. A heap with other
/// threads' blocks in it never may, since destroying it would free them.
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

class HeapTable {
 private:
  auto link() {
    return [this](std::uint32_t index) -> Atomic<std::uint32_t>& { return at(index)->parked_next; };
  }

 public:
  constexpr HeapTable() = default;

  /// Once, after the region has its place and before any other call; `at_thread_exit` is to call leave_thread. False
  /// when there is no address space or no key for it.
  bool reserve(base::ThreadExit::Callback at_thread_exit);

  /// Gives the calling thread a heap: a parked one when there is one, else a new one. Null when memory is exhausted.
  /// O(1).
  ThreadHeap* enter_thread();
  /// The calling thread's, also while the guard hides it; the empty one: it has none.
  static ThreadHeap* of_thread();
  /// Parks the calling thread's heap for the next thread to come, with all its slabs and blocks. O(1).
  void leave_thread(std::uint16_t tick);
  /// Whether the calling thread has left a heap: what it allocates and frees at its very end must not have it take
  /// another, which nobody would park.
  static bool thread_has_left();
  /// Whether the calling thread, which has no heap, is to be lent one for this allocation alone: its end has begun, or
  /// it may be in the midst of setting a value of its own, so that what parks its heap can't be set.
  static bool only_lends(unsigned size_class);
  /// Lends a heap to use(ThreadHeap*); null when memory is exhausted. O(1) beyond what that does.
  template <class Use>
  void* lend(std::uint16_t tick, Use&& use) {
    ThreadHeap* const heap = heaps_ != nullptr ? new_heap(parked_.take(link())) : nullptr;
    if (heap == nullptr) {
      return nullptr;
    }
    void* const block = use(heap);
    park(heap, tick);
    return block;
  }

  /// Parks a heap that no thread has any more, to be flushed some ticks later. O(1).
  void park(ThreadHeap* heap, std::uint16_t tick) {
    heap->needs_flush = true;
    heap->parked_at = tick;
    park(heap);
  }
  /// Parks it as it is.
  void park(ThreadHeap* heap) { parked_.park(heap->index, link()); }
  /// The next parked heap to be swept, to be parked again afterwards; null ends the turn. One thread at a time.
  ThreadHeap* take_to_sweep() {
    const std::uint32_t index = parked_.take_to_sweep(link());
    return index != 0 ? at(index) : nullptr;
  }
  /// Makes heaps in advance, as long as few stand ready: a new thread's first allocation then causes no page fault for
  /// its heap. One thread at a time.
  void keep_spare_heaps();

  /// A heap without any block, for an arena, and its way back. Null when too many exist.
  ThreadHeap* take_empty() { return heaps_ != nullptr ? new_heap(parked_.take_empty(link())) : nullptr; }
  void park_empty(ThreadHeap* heap) { parked_.park_empty(heap->index, link()); }

  ThreadHeap* at(std::uint32_t index) { return reinterpret_cast<ThreadHeap*>(heaps_ + index * heap_stride); }
  /// Calls visit(ThreadHeap*) for every heap that was ever made.
  template <class Visit>
  void for_each(Visit&& visit) {
    const std::uint32_t count = count_.load(std::memory_order_relaxed);
    for (std::uint32_t index = 1; index <= count; ++index) {
      if (at(index)->made.load(std::memory_order_acquire)) {  // else a thread is at it, and it holds nothing yet
        visit(at(index));
      }
    }
  }
  /// Heaps that a thread or a program ever had; racy.
  std::uint32_t in_use() const {
    return count_.load(std::memory_order_relaxed) - spare_count_.load(std::memory_order_relaxed);
  }

 private:
  ThreadHeap* construct();
  bool make_room(std::uint32_t index);
  ThreadHeap* new_heap(std::uint32_t waiting);

  char* heaps_ = nullptr;          // heap_stride bytes each; the first is none
  Atomic<std::uint32_t> room_{0};  // entries of heaps_ that are mapped
  Atomic<std::uint32_t> count_{0};
  ParkedHeaps<> parked_;
  IndexStack<> spares_;  // heaps that no thread ever had
  Atomic<std::uint32_t> spare_count_{0};
};

extern HeapTable process_heaps;

}  // namespace blockyard::heap
