// Where malloc and its kin go when their fast paths do not serve: to the plain heap (malloc_api.cpp), or to the guard,
// which looks for misuse and gets all calls. What is no call for a block asks for the guard itself: arenas, start and
// end of the process, a thread's heap.
#pragma once

#include <cstddef>

#include "heap/api/start.hpp"
#include "heap/guard/guard.hpp"

namespace blockyard::heap {

inline bool has_guarded_blocks() { return call_mode.load(std::memory_order_relaxed) == CallMode::guarded; }
/// Whether the heap is the guarded one. Before it is ready: readies it.
inline bool is_guarded() {
  const CallMode mode = call_mode.load(std::memory_order_acquire);
  return mode != CallMode::plain && (mode == CallMode::guarded || (initialise() && has_guarded_blocks()));
}

/// `Plain` has the same functions.
template <class Plain>
struct SlowCalls {
  /// Up to small_limit.
  [[gnu::noinline]] static void* allocate_small(std::size_t size) {
    return is_guarded() ? guard::allocate_small(size) : Plain::allocate_small(size);
  }
  [[gnu::noinline]] static void* allocate_large(std::size_t size, std::size_t alignment, bool* zeroed) {
    return is_guarded() ? guard::allocate(size, alignment, zeroed) : Plain::allocate_large(size, alignment, zeroed);
  }
  /// A power of two above block_alignment.
  [[gnu::noinline]] static void* allocate_aligned(std::size_t alignment, std::size_t size) {
    return is_guarded() ? guard::allocate(size, alignment, nullptr) : Plain::allocate_aligned(alignment, size);
  }
  /// Any pointer but null, and so the next: where it is a block, the heap is ready.
  [[gnu::noinline]] static void deallocate(void* block) {
    has_guarded_blocks() ? guard::deallocate(block) : Plain::deallocate(block);
  }
  static std::size_t usable(const void* block) {
    return has_guarded_blocks() ? guard::usable(block) : Plain::usable(block);
  }
  static void* reallocate(void* block, std::size_t size) {
    return has_guarded_blocks() ? guard::reallocate(block, size) : Plain::reallocate(block, size);
  }
};

}  // namespace blockyard::heap
