// Compiled in GCC's own language mode, where a 128-bit integer counts as an integer.
#include <cstddef>
#include <type_traits>

#include "blockyard/hash_map.hpp"

__extension__ using Number = __int128;
static_assert(std::is_integral_v<Number>);

std::size_t bytes_of_a_map_in_gnu_mode() { return sizeof(blockyard::HashMap<Number, int>); }
