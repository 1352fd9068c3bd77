/// SortedNumbers: a search among a few dozen sorted numbers in a row. Inside of ordered_container.hpp.
///
/// Bounds: no branch depends on a number; with 64 numbers of 4 bytes, 3 comparisons and 4 of vectors, in two or three
/// cache lines.
///
/// Halving would wait for one load after the other, and compilers make jumps of it (4.4 mispredicted ones in a find
/// among a million, in a tree of such rows). So the last number of each *window* is looked at, all side by side, and
/// then all numbers of one window. Few instructions matter as much: with some 60 at each level of the tree the
/// processor has begun the next find, or more, while one waits for memory; with 120 its reorder buffer was full before,
/// and finds took twice as long.
#ifndef BLOCKYARD_DETAIL_SORTED_NUMBERS_HPP
#define BLOCKYARD_DETAIL_SORTED_NUMBERS_HPP

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace blockyard::container {

/// `K` is an arithmetic type of 4 or 8 bytes.
template <class K>
struct SortedNumbers {
  /// Numbers that are looked at side by side: mostly a cache line of them.
  static constexpr std::size_t window = sizeof(K) == 8 ? 8 : 16;
  /// Of a row, bytes.
  static constexpr std::size_t alignment = window * sizeof(K);

  /// What stands behind the last number of a row, so that a search need not know how many there are: the greatest one,
  /// as often as 8 bytes hold it.
  static constexpr std::uint64_t padding() {
    using Limits = std::numeric_limits<K>;
    std::array<K, 8 / sizeof(K)> numbers{};
    numbers.fill(Limits::has_infinity ? Limits::infinity() : Limits::max());
    return std::bit_cast<std::uint64_t>(numbers);
  }

  /// How many of a row are less than `wanted`: of `Slots`, which is a multiple of the window, the first ones.
  template <std::size_t Slots>
  static unsigned less_than(const K* row, const K wanted) {
    static_assert(Slots % window == 0);
    unsigned begin = 0;
    for (std::size_t last = window - 1; last + 1 < Slots; last += window) {
      begin += static_cast<unsigned>(row[last] < wanted);
    }
    begin *= static_cast<unsigned>(window);
    return begin + less_in_window(row + begin, wanted);
  }

 private:
  static unsigned less_in_window(const K* row, const K wanted) {
    if constexpr (sizeof(K) == 4) {
      // Four at once: compilers make 80 instructions of the plain loop, where these are 20.
      using Integer = std::conditional_t<std::is_signed_v<K>, std::int32_t, std::uint32_t>;
      using Number = std::conditional_t<std::is_floating_point_v<K>, K, Integer>;
      using Four [[gnu::vector_size(16)]] = Number;
      using Counts [[gnu::vector_size(16)]] = std::int32_t;
      const auto number = static_cast<Number>(wanted);
      const Four limit = {number, number, number, number};
      Counts less{};
      for (std::size_t i = 0; i < window; i += 4) {
        Four four;
        std::memcpy(&four, __builtin_assume_aligned(row + i, 16), sizeof four);
        less -= four < limit;  // -1 where it is
      }
      less += __builtin_shufflevector(less, less, 2, 3, 0, 1);
      less += __builtin_shufflevector(less, less, 1, 0, 3, 2);
      return static_cast<unsigned>(less[0]);
    } else {
      unsigned less = 0;
      for (std::size_t i = 0; i < window; ++i) {
        less += static_cast<unsigned>(row[i] < wanted);
      }
      return less;
    }
  }
};

}  // namespace blockyard::container

#endif
