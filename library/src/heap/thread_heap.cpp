#include "heap/thread_heap.hpp"

namespace blockyard::heap {

constinit Slab empty_slab{.notify = notify_never};
constinit ThreadHeap empty_heap{&empty_slab, no_heap};
constinit thread_local ThreadHeap* thread_heap __attribute__((tls_model("initial-exec"))) = &empty_heap;
constinit thread_local ThreadHeap* heap_behind_guard __attribute__((tls_model("initial-exec"))) = &empty_heap;

void ThreadHeap::extend_cache(unsigned size_class) {
  const std::uint32_t capacity = cache_capacity(size_class);
  if (!is_extended(size_class) && capacity > most_in_bin) {
    const std::uint32_t count = cached(size_class);
    copy_blocks(first_cached(size_class), extended[size_class].data(), count);
    entries[size_class].last = static_cast<std::uint16_t>(extended_place(size_class));
    entries[size_class].second = place(size_class, count);
  }
  set_cache_limit(size_class, capacity);
}

}  // namespace blockyard::heap
