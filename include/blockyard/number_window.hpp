/// How many of up to 16 numbers in ascending order are less than another one, without a branch that depends on them.
/// Inside of ordered_index.hpp.
#ifndef BLOCKYARD_NUMBER_WINDOW_HPP
#define BLOCKYARD_NUMBER_WINDOW_HPP

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace blockyard::container {

/// Numbers in a window. Memory for all of them is read; what lies behind the `count` that are there may be anything. More
/// than a window, below 64, may be there: only these are looked at.
inline constexpr unsigned number_window = 16;

/// In two steps of comparisons side by side: which four numbers, and which of them.
template <class K>
[[nodiscard, gnu::always_inline]] inline unsigned window_lower_bound_any(const K* numbers, unsigned count, K wanted) {
  const auto is_less = [&](unsigned i) {
    K number;
    std::memcpy(&number, numbers + i, sizeof number);
    return static_cast<unsigned>(i < count) & static_cast<unsigned>(number < wanted);
  };
  const unsigned first = 4 * (is_less(3) + is_less(7) + is_less(11));
  return first + is_less(first) + is_less(first + 1) + is_less(first + 2) + is_less(first + 3);
}

#if defined(__SSE2__)
/// All of them at once: a quarter of the instructions.
template <class K>
[[nodiscard, gnu::always_inline]] inline unsigned window_lower_bound(const K* numbers, unsigned count, K wanted) {
  if constexpr (sizeof(K) == 4) {
    const auto four_less = [&](unsigned i) {
      const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(numbers + i));
      if constexpr (std::is_floating_point_v<K>) {
        return _mm_castps_si128(_mm_cmplt_ps(_mm_castsi128_ps(four), _mm_set1_ps(wanted)));
      } else {
        // The comparison is of signed numbers.
        const __m128i flip = _mm_set1_epi32(std::is_signed_v<K> ? 0 : INT32_MIN);
        return _mm_cmpgt_epi32(_mm_xor_si128(_mm_set1_epi32(static_cast<int>(wanted)), flip),
                               _mm_xor_si128(four, flip));
      }
    };
    const __m128i less =
        _mm_packs_epi16(_mm_packs_epi32(four_less(0), four_less(4)), _mm_packs_epi32(four_less(8), four_less(12)));
    // Those that are less come first, so where the first other one lies is their number; at `count` at the latest, which
    // also keeps what is not initialised out of the result.
    const std::uint64_t others = ~std::uint64_t{static_cast<unsigned>(_mm_movemask_epi8(less))};
    return static_cast<unsigned>(std::countr_zero(others | std::uint64_t{1} << count));
  } else {
    return window_lower_bound_any(numbers, count, wanted);
  }
}
#else
template <class K>
[[nodiscard, gnu::always_inline]] inline unsigned window_lower_bound(const K* numbers, unsigned count, K wanted) {
  return window_lower_bound_any(numbers, count, wanted);
}
#endif

}  // namespace blockyard::container

#endif
