// Prefetching a cache line that is about to be written.
//
// Without flags that name a newer processor the compiler makes an ordinary prefetch of __builtin_prefetch(place, 1):
// the line then comes shared, and the write waits once more until the other cores have given it up.
#pragma once

namespace blockyard::heap {

/// Fetches the line of `place` as its only owner. A hint: any address is right, nothing is read or changed.
[[gnu::always_inline]] inline void prefetch_to_write(const void* place) {
#if defined(__x86_64__)
  // PREFETCHW: AMD's processors all have it, Intel's since Broadwell; on older ones of 64 bits it does nothing.
  __asm__ volatile("prefetchw %0" : : "m"(*static_cast<const char*>(place)));
#else
  __builtin_prefetch(place, 1);
#endif
}

}  // namespace blockyard::heap
