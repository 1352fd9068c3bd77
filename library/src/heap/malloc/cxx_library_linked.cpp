// Of the C++ library that the heap is linked with.
#include <new>

#include "heap/malloc/cxx_library.hpp"

namespace blockyard::heap {

std::new_handler new_handler() { return std::get_new_handler(); }
void throw_bad_alloc() { throw std::bad_alloc(); }

}  // namespace blockyard::heap
