// operator new and delete, over heap.h.
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

using blockyard::heap::new_or_null;
using blockyard::heap::NewForm;

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

// Those above, by names that nobody else defines.
#define BY_OWN(name) __attribute__((alias(name), visibility("hidden"), malloc, alloc_size(1)))
namespace {
extern "C" {
void* by_own_new(std::size_t size) BY_OWN("_Znwm");
void* by_own_new_array(std::size_t size) BY_OWN("_Znam");
void* by_own_aligned_new(std::size_t size, std::align_val_t alignment) BY_OWN("_ZnwmSt11align_val_t");
void* by_own_aligned_new_array(std::size_t size, std::align_val_t alignment) BY_OWN("_ZnamSt11align_val_t");
}

// Whether the program has none of its own.
bool are_in_use() {
  using New = void*(std::size_t);
  using AlignedNew = void*(std::size_t, std::align_val_t);
  return static_cast<New*>(&::operator new) == by_own_new && static_cast<New*>(&::operator new[]) == by_own_new_array &&
         static_cast<AlignedNew*>(&::operator new) == by_own_aligned_new &&
         static_cast<AlignedNew*>(&::operator new[]) == by_own_aligned_new_array;
}
}  // namespace

// What catches, where there is no block or a function of the program's is to be called, is the C++ library's. These are
// here because a library that the program links may bring them, and no other heap's blocks must come to the deletes.
BY_EXPORT void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  void* const block = are_in_use() ? by_malloc(size) : nullptr;
  return block != nullptr ? block : new_or_null(NewForm::one, size, {});
}
BY_EXPORT void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  void* const block = are_in_use() ? by_malloc(size) : nullptr;
  return block != nullptr ? block : new_or_null(NewForm::array, size, {});
}
BY_EXPORT void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  void* const block = are_in_use() ? by_aligned_alloc(bytes_of(alignment), size) : nullptr;
  return block != nullptr ? block : new_or_null(NewForm::aligned_one, size, alignment);
}
BY_EXPORT void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  void* const block = are_in_use() ? by_aligned_alloc(bytes_of(alignment), size) : nullptr;
  return block != nullptr ? block : new_or_null(NewForm::aligned_array, size, alignment);
}

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
