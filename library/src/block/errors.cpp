// Exceptions thrown out of line, so that inline code stays small.
#include <new>
#include <stdexcept>

#include "blockyard/detail/type_record.hpp"

namespace blockyard::block {

void throw_bad_alloc() { throw std::bad_alloc(); }
void throw_bad_array_new_length() { throw std::bad_array_new_length(); }
void throw_invalid_argument(const char* what) { throw std::invalid_argument(what); }
void throw_out_of_range(const char* what) { throw std::out_of_range(what); }

}  // namespace blockyard::block
