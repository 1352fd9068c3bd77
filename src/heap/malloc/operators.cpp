// All forms of operator new and delete, over heap.h.
#include <cstddef>
#include <new>

#include "blockyard/heap.h"

#define BY_EXPORT __attribute__((visibility("default")))

namespace {

// The standard's loop: the new handler may free something, throw, or be absent.
template <class Try>
void* allocate_or_handle(Try&& attempt) {
  for (;;) {
    if (void* const block = attempt(); block != nullptr) [[likely]] {
      return block;
    }
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) {
      throw std::bad_alloc();
    }
    handler();
  }
}

template <class Try>
void* allocate_or_null(Try&& attempt) noexcept {
  try {
    return allocate_or_handle(attempt);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

std::size_t bytes_of(std::align_val_t alignment) { return static_cast<std::size_t>(alignment); }

}  // namespace

BY_EXPORT void* operator new(std::size_t size) {
  if (void* const block = by_malloc(size); block != nullptr) [[likely]] {
    return block;
  }
  return allocate_or_handle([=] { return by_malloc(size); });
}
BY_EXPORT void* operator new[](std::size_t size) {
  if (void* const block = by_malloc(size); block != nullptr) [[likely]] {
    return block;
  }
  return allocate_or_handle([=] { return by_malloc(size); });
}
BY_EXPORT void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate_or_null([=] { return by_malloc(size); });
}
BY_EXPORT void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate_or_null([=] { return by_malloc(size); });
}
BY_EXPORT void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_handle([=] { return by_aligned_alloc(bytes_of(alignment), size); });
}
BY_EXPORT void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate_or_handle([=] { return by_aligned_alloc(bytes_of(alignment), size); });
}
BY_EXPORT void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_or_null([=] { return by_aligned_alloc(bytes_of(alignment), size); });
}
BY_EXPORT void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_or_null([=] { return by_aligned_alloc(bytes_of(alignment), size); });
}

BY_EXPORT void operator delete(void* block) noexcept { by_free(block); }
BY_EXPORT void operator delete[](void* block) noexcept { by_free(block); }
BY_EXPORT void operator delete(void* block, std::size_t) noexcept { by_free(block); }
BY_EXPORT void operator delete[](void* block, std::size_t) noexcept { by_free(block); }
BY_EXPORT void operator delete(void* block, const std::nothrow_t&) noexcept { by_free(block); }
BY_EXPORT void operator delete[](void* block, const std::nothrow_t&) noexcept { by_free(block); }
BY_EXPORT void operator delete(void* block, std::align_val_t) noexcept { by_free(block); }
BY_EXPORT void operator delete[](void* block, std::align_val_t) noexcept { by_free(block); }
BY_EXPORT void operator delete(void* block, std::size_t, std::align_val_t) noexcept { by_free(block); }
BY_EXPORT void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { by_free(block); }
BY_EXPORT void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept { by_free(block); }
BY_EXPORT void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept { by_free(block); }
