// What operator new needs of the C++ library once the heap has no block left: the program's handler, and the exception.
// Who links the heap links a C++ library too (cxx_library_linked.cpp). The preload goes under C programs as well, and
// does without one (cxx_library_found.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

namespace blockyard::heap {

/// std::get_new_handler().
std::new_handler new_handler();
/// Throws std::bad_alloc.
[[noreturn]] void throw_bad_alloc();

enum class NewForm : std::uint8_t { one, array, aligned_one, aligned_array };
/// The nothrow form: calls the one that throws, and returns null where that does. `alignment`: of aligned forms.
void* new_or_null(NewForm form, std::size_t size, std::align_val_t alignment) noexcept;

}  // namespace blockyard::heap
