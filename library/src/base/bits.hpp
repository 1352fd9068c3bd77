// Powers of two and rounding. Every function is constexpr and O(1).
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace blockyard::base {

constexpr bool is_power_of_two(std::size_t value) { return std::has_single_bit(value); }

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

/// Largest k with 2^k <= value; value must not be 0.
constexpr unsigned log2_floor(std::size_t value) { return static_cast<unsigned>(std::bit_width(value)) - 1; }

/// Smallest k with 2^k >= value; 0 for 0 and 1.
constexpr unsigned log2_ceil(std::size_t value) { return value <= 1 ? 0 : log2_floor(value - 1) + 1; }

}  // namespace blockyard::base
