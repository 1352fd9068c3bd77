// The malloc family over heap.h, with what POSIX and glibc's documentation say of errno, zero sizes and alignment.
#include <malloc.h>

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/bits.hpp"
#include "base/kept_errno.hpp"
#include "base/pages.hpp"
#include "blockyard/heap.h"

#define BY_EXPORT extern "C" __attribute__((visibility("default")))

BY_EXPORT void* malloc(size_t size) { return by_malloc(size); }
BY_EXPORT void free(void* block) { by_free(block); }
BY_EXPORT void* calloc(size_t count, size_t size) { return by_calloc(count, size); }

BY_EXPORT void* realloc(void* block, size_t size) {
  // glibc: realloc(p, 0) frees p and returns NULL.
  if (size == 0 && block != nullptr) {
    by_free(block);
    return nullptr;
  }
  return by_realloc(block, size);
}

BY_EXPORT void* reallocarray(void* block, size_t count, size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    return blockyard::base::failed(ENOMEM);
  }
  return realloc(block, bytes);
}

BY_EXPORT void* aligned_alloc(size_t alignment, size_t size) { return by_aligned_alloc(alignment, size); }

// glibc rounds an alignment that is no power of two up to the next one.
BY_EXPORT void* memalign(size_t alignment, size_t size) {
  if (alignment > SIZE_MAX / 2 + 1) {
    return blockyard::base::failed(EINVAL);
  }
  return by_aligned_alloc(std::bit_ceil(alignment), size);
}

BY_EXPORT int posix_memalign(void** place, size_t alignment, size_t size) {
  if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) {
    return EINVAL;
  }
  const blockyard::base::KeptErrno kept;
  void* const block = by_aligned_alloc(alignment, size);
  if (block == nullptr) {
    return ENOMEM;
  }
  *place = block;
  return 0;
}

BY_EXPORT void* valloc(size_t size) { return by_aligned_alloc(blockyard::base::page_size(), size); }

BY_EXPORT void* pvalloc(size_t size) {
  const std::size_t page = blockyard::base::page_size();
  const std::size_t rounded = blockyard::base::align_up(size == 0 ? page : size, page);
  if (rounded == 0) {
    return blockyard::base::failed(ENOMEM);
  }
  return by_aligned_alloc(page, rounded);
}

BY_EXPORT void cfree(void* block) { by_free(block); }

// C23. The size is the program's promise; the heap knows it anyway.
BY_EXPORT void free_sized(void* block, size_t size) { by_free_sized(block, size); }
BY_EXPORT void free_aligned_sized(void* block, size_t, size_t size) { by_free_sized(block, size); }

BY_EXPORT size_t malloc_usable_size(void* block) { return by_usable_size(block); }

// glibc exports its family by these names too, and a program that mixes both frees a block of one heap in the other.
BY_EXPORT void* __libc_malloc(size_t size) { return malloc(size); }
BY_EXPORT void __libc_free(void* block) { free(block); }
BY_EXPORT void* __libc_calloc(size_t count, size_t size) { return calloc(count, size); }
BY_EXPORT void* __libc_realloc(void* block, size_t size) { return realloc(block, size); }
BY_EXPORT void* __libc_memalign(size_t alignment, size_t size) { return memalign(alignment, size); }
BY_EXPORT void* __libc_valloc(size_t size) { return valloc(size); }
BY_EXPORT void* __libc_pvalloc(size_t size) { return pvalloc(size); }
