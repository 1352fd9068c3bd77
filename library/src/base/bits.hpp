// Rounding. Every function is constexpr and O(1).
#pragma once

#include <concepts>
#include <cstddef>

namespace blockyard::base {

/// The least multiple of `alignment` (a power of two) not below `value`; wraps to 0 when that exceeds the type.
template <std::unsigned_integral T>
constexpr T align_up(T value, T alignment) {
  return static_cast<T>((value + (alignment - 1)) & ~(alignment - 1));
}

/// The greatest multiple of `alignment` (a power of two) not above `value`.
template <std::unsigned_integral T>
constexpr T align_down(T value, T alignment) {
  return static_cast<T>(value & ~(alignment - 1));
}

}  // namespace blockyard::base
