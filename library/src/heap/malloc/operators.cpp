// operator new and delete, over heap.h. The nothrow forms of new, which catch exceptions, are left to the C++ library:
// they call the others.
//
// As the standard has it, every form but four calls another by its name, and that name may be a program's own: one that
// replaces only operator new(size_t) and operator delete(void*), as many do, gets its new[] and its sized deletes from
// here, and they must come to its functions, or a block of its own making would be freed into this heap. Hence
// operators.list, by which the linker leaves these calls to the dynamic linker, and `weak`, by which a program that
// links the heap instead may define any of them.
#include <cstddef>
#include <new>

#include "blockyard/heap.h"
#include "heap/malloc/cxx_library.hpp"

#define BY_EXPORT __attribute__((visibility("default"), weak))

namespace {

// The standard's loop: the new handler may free something, throw, or be absent.
template <class Try>
void* allocate_or_handle(Try&& attempt) {
  for (;;) {
    if (void* const block = attempt(); block != nullptr) [[likely]] {
      return block;
    }
    const std::new_handler handler = blockyard::heap::new_handler();
    if (handler == nullptr) {
      blockyard::heap::throw_bad_alloc();
    }
    handler();
  }
}

std::size_t bytes_of(std::align_val_t alignment) { return static_cast<std::size_t>(alignment); }

}  // namespace

// The four that the others come to.
BY_EXPORT void* operator new(std::size_t size) {
  if (void* const block = by_malloc(size); block != nullptr) [[likely]] {
    return block;
  }
  return allocate_or_handle([=] { return by_malloc(size); });
}
BY_EXPORT void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_handle([=] { return by_aligned_alloc(bytes_of(alignment), size); });
}
BY_EXPORT void operator delete(void* block) noexcept { by_free(block); }
BY_EXPORT void operator delete(void* block, std::align_val_t) noexcept { by_free(block); }

BY_EXPORT void* operator new[](std::size_t size) { return ::operator new(size); }
BY_EXPORT void* operator new[](std::size_t size, std::align_val_t alignment) { return ::operator new(size, alignment); }

BY_EXPORT void operator delete[](void* block) noexcept { ::operator delete(block); }
BY_EXPORT void operator delete(void* block, std::size_t) noexcept { ::operator delete(block); }
BY_EXPORT void operator delete[](void* block, std::size_t) noexcept { ::operator delete[](block); }
BY_EXPORT void operator delete(void* block, const std::nothrow_t&) noexcept { ::operator delete(block); }
BY_EXPORT void operator delete[](void* block, const std::nothrow_t&) noexcept { ::operator delete[](block); }
BY_EXPORT void operator delete[](void* block, std::align_val_t alignment) noexcept {
  ::operator delete(block, alignment);
}
BY_EXPORT void operator delete(void* block, std::size_t, std::align_val_t alignment) noexcept {
  ::operator delete(block, alignment);
}
BY_EXPORT void operator delete[](void* block, std::size_t, std::align_val_t alignment) noexcept {
  ::operator delete[](block, alignment);
}
BY_EXPORT void operator delete(void* block, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  ::operator delete(block, alignment);
}
BY_EXPORT void operator delete[](void* block, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  ::operator delete[](block, alignment);
}
