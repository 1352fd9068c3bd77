// glibc's questions about the heap, answered from by_heap_get_statistics to the extent that they make sense here.
#include <malloc.h>

#include <cerrno>
#include <cstdio>

#include "blockyard/heap.h"

#define BY_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

by_heap_statistics statistics() {
  by_heap_statistics values{};
  by_heap_get_statistics(&values);
  return values;
}

}  // namespace

// `pad`, what should stay free at the top, has no counterpart: the janitor makes a new reserve anyway.
BY_EXPORT int malloc_trim(size_t) { return by_heap_trim() > 0 ? 1 : 0; }

// arena: bytes of slabs and of populated free memory; uordblks: live; fordblks: the difference. There are no fast bins
// and nothing is mapped on its own, so those fields are 0.
BY_EXPORT struct mallinfo2 mallinfo2(void) {
  const by_heap_statistics now = statistics();
  struct mallinfo2 info {};
  info.arena = now.committed;
  info.uordblks = now.live;
  info.fordblks = now.committed - now.live;
  info.keepcost = now.ready;
  return info;
}

// The old form, whose fields are ints: they wrap above 2 GiB, as glibc's do.
BY_EXPORT struct mallinfo __libc_mallinfo(void) {
  const struct mallinfo2 wide = mallinfo2();
  struct mallinfo info {};
  info.arena = static_cast<int>(wide.arena);
  info.uordblks = static_cast<int>(wide.uordblks);
  info.fordblks = static_cast<int>(wide.fordblks);
  info.keepcost = static_cast<int>(wide.keepcost);
  return info;
}
BY_EXPORT struct mallinfo mallinfo(void) { return __libc_mallinfo(); }

// The parameters that mean something here; 0, as for any that is unknown, for the others:
// - M_TRIM_THRESHOLD -1 (or any other negative number): what is free stays. Any other value: it goes back as before.
// - M_TOP_PAD: address space is taken ahead anyway, and none of it is populated for that.
// - M_MMAP_MAX 0: no block is a mapping of its own, which holds anyway.
BY_EXPORT int mallopt(int parameter, int value) {
  constexpr unsigned never = 1'000'000;  // the longest time that BY_HEAP_PURGE takes
  switch (parameter) {
    case M_TRIM_THRESHOLD: {
      static constinit unsigned long long usual = never;
      const unsigned long long now = by_heap_get(BY_HEAP_PURGE);
      if (now != never) {
        usual = now;
      }
      return by_heap_set(BY_HEAP_PURGE, value < 0 ? never : usual) == 0 ? 1 : 0;
    }
    case M_TOP_PAD:
      return value >= 0 ? 1 : 0;
    case M_MMAP_MAX:
      return value == 0 ? 1 : 0;
    default:
      return 0;
  }
}

BY_EXPORT int __libc_mallopt(int parameter, int value) { return mallopt(parameter, value); }

// An XML document, as glibc's, of our own elements.
BY_EXPORT int malloc_info(int options, FILE* stream) {
  if (options != 0) {
    return EINVAL;
  }
  const by_heap_statistics now = statistics();
  const int printed = std::fprintf(
      stream,
      "<malloc version=\"blockyard-1\">\n"
      "<system type=\"committed\" size=\"%llu\"/>\n<system type=\"ready\" size=\"%llu\"/>\n"
      "<total type=\"used\" size=\"%llu\"/>\n<total type=\"live\" size=\"%llu\"/>\n"
      "<misses type=\"small\" count=\"%llu\"/>\n<misses type=\"medium\" count=\"%llu\"/>\n"
      "<heaps count=\"%llu\"/>\n</malloc>\n",
      static_cast<unsigned long long>(now.committed), static_cast<unsigned long long>(now.ready),
      static_cast<unsigned long long>(now.used), static_cast<unsigned long long>(now.live),
      static_cast<unsigned long long>(now.ready_misses_small), static_cast<unsigned long long>(now.ready_misses_medium),
      static_cast<unsigned long long>(now.heaps));
  return printed < 0 ? errno : 0;
}

BY_EXPORT void malloc_stats(void) { malloc_info(0, stderr); }
