// The forwarder to the system's malloc that stands behind heap.h until Blockyard's own heap replaces it.
#include <malloc.h>

#include <cerrno>
#include <cstdlib>

#include "blockyard/heap.h"

extern "C" {

void* by_malloc(size_t size) { return std::malloc(size); }

void by_free(void* block) { std::free(block); }

void* by_calloc(size_t count, size_t size) { return std::calloc(count, size); }

void* by_realloc(void* block, size_t size) {
  // glibc's realloc(p, 0) frees and returns NULL; ours keeps one meaning for size 0: a unique block.
  return std::realloc(block, size == 0 ? 1 : size);
}

void* by_aligned_alloc(size_t alignment, size_t size) {
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    errno = EINVAL;
    return nullptr;
  }
  void* block = nullptr;
  const int error = posix_memalign(&block, alignment < sizeof(void*) ? sizeof(void*) : alignment, size);
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  return block;
}

size_t by_usable_size(const void* block) { return malloc_usable_size(const_cast<void*>(block)); }

}  // extern "C"
