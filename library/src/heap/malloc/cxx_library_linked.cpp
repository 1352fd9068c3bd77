// Of the C++ library that the heap is linked with.
#include <new>

#include "heap/malloc/cxx_library.hpp"

namespace blockyard::heap {

std::new_handler new_handler() { return std::get_new_handler(); }
void throw_bad_alloc() { throw std::bad_alloc(); }

void* new_or_null(NewForm form, std::size_t size, std::align_val_t alignment) noexcept {
  try {
    switch (form) {
      case NewForm::one:
        return ::operator new(size);
      case NewForm::array:
        return ::operator new[](size);
      case NewForm::aligned_one:
        return ::operator new(size, alignment);
      case NewForm::aligned_array:
        return ::operator new[](size, alignment);
    }
  } catch (...) {
  }
  return nullptr;
}

}  // namespace blockyard::heap
