#include "heap/front/thread_heap.hpp"

#include <algorithm>

namespace blockyard::heap {

constinit Slab empty_slab{.notify = notify_never};
constinit ThreadHeap empty_heap{&empty_slab, no_heap};
constinit thread_local ThreadHeap* thread_heap __attribute__((tls_model("initial-exec"))) = &empty_heap;
constinit thread_local ThreadHeap* heap_behind_guard __attribute__((tls_model("initial-exec"))) = &empty_heap;

void ThreadHeap::extend_cache(unsigned size_class, std::uint32_t limit) {
  if (!is_extended(size_class) && limit > most_in_bin) {
    const std::uint32_t count = cached(size_class);
    copy_blocks(first_cached(size_class), &at(extended_position(size_class)), count);
    entries[size_class].last = static_cast<std::uint16_t>(extended_position(size_class));
    entries[size_class].second = static_cast<std::uint16_t>(position(size_class, count));
  }
  set_cache_limit(size_class, std::max(limit, cache_limit(size_class)));
}

void ThreadHeap::share_cache(unsigned size_class) {
  in_turn &= ~(std::uint32_t{1} << size_class);
  extend_cache(size_class, cache_capacity(size_class));
  set_cache_limit(size_class, cache_capacity(size_class));
}

void ThreadHeap::drop_oldest(unsigned size_class, std::uint32_t count) {
  const std::uint32_t held = cached(size_class);
  void** const first = oldest_cached(size_class, count);
  copy_blocks(first + count, first, static_cast<std::uint32_t>(first_cached(size_class) + held - first) - count);
  set_cached(size_class, entries[size_class].newest, held - count);
}

}  // namespace blockyard::heap
