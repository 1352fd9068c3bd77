/// Preloaded: counts the process's calls of the malloc family and passes them on to glibc.
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "blockyard/detail/visibility.h"

extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void __libc_free(void*);

static std::atomic<std::uint64_t> count{0};

BY_API std::uint64_t counted_mallocs() { return count.load(); }

BY_API void* malloc(std::size_t size) {
  ++count;
  return __libc_malloc(size);
}
BY_API void* calloc(std::size_t members, std::size_t size) {
  ++count;
  return __libc_calloc(members, size);
}
BY_API void* realloc(void* block, std::size_t size) {
  ++count;
  return __libc_realloc(block, size);
}
BY_API void free(void* block) {
  ++count;
  __libc_free(block);
}
}
