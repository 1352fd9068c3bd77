/// The default hasher and comparator of HashMap, and KeyValue, the entry of HashMap and RBMap.
#ifndef BLOCKYARD_HASH_HPP
#define BLOCKYARD_HASH_HPP

#include "blockyard/detail/cpp20.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace blockyard {

/// An entry of HashMap and RBMap: a key that does not change, and its value; auto& [key, value] names them.
template <class K, class V>
struct KeyValue {
  const K key;
  V value;

  template <class Key, class... Arguments>
  explicit KeyValue(std::in_place_t, Key&& from, Arguments&&... arguments)
      : key(std::forward<Key>(from)), value(std::forward<Arguments>(arguments)...) {}

  friend bool operator==(const KeyValue& a,
                         const KeyValue& b) requires std::equality_comparable<K> && std::equality_comparable<V> {
    return a.key == b.key && a.value == b.value;
  }
};

namespace container {

__extension__ using Wide = unsigned __int128;
__extension__ using SignedWide = __int128;

/// Both halves of a product, one over the other: each bit of either factor changes about half of the result.
[[nodiscard]] inline std::uint64_t fold_product(std::uint64_t a, std::uint64_t b) noexcept {
  const Wide product = Wide{a} * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// Hashes bytes, 16 at a time, one multiplication each. All bits of the result are well spread. O(bytes). It does not
/// withstand an attacker who chooses the keys. The construction is that of wyhash (Wang Yi, 2019).
[[nodiscard]] inline std::uint64_t hash_bytes(const char* bytes, std::size_t count) noexcept {
  // The fractional digits of pi.
  constexpr std::uint64_t first = 0x243f'6a88'85a3'08d3;
  constexpr std::uint64_t second = 0x1319'8a2e'0370'7344;
  constexpr std::uint64_t third = 0xa409'3822'299f'31d1;
  const auto load = [](const char* from, auto word) {
    std::memcpy(&word, from, sizeof word);
    return std::uint64_t{word};
  };
  std::uint64_t state = second ^ count;
  // The rest as two words, which overlap where it is short. Behind 16 bytes they are always the last two: the length of
  // the next string is hard to predict.
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  if (count > 16) {
    const char* const last = bytes + count - 16;
    do {
      state = fold_product(load(bytes, std::uint64_t{}) ^ first, load(bytes + 8, std::uint64_t{}) ^ state);
      bytes += 16;
    } while (bytes < last);
    low = load(last, std::uint64_t{});
    high = load(last + 8, std::uint64_t{});
  } else if (count >= 8) {
    low = load(bytes, std::uint64_t{});
    high = load(bytes + count - 8, std::uint64_t{});
  } else if (count >= 4) {
    low = load(bytes, std::uint32_t{});
    high = load(bytes + count - 4, std::uint32_t{});
  } else if (count != 0) {
    low = load(bytes, std::uint8_t{}) << 16 | load(bytes + count / 2, std::uint8_t{}) << 8 |
          load(bytes + count - 1, std::uint8_t{});
  }
  return fold_product(fold_product(low ^ first, high ^ state), third);
}

template <class T>
inline constexpr bool is_standard_string = std::is_same_v<T, std::string_view>;
template <class A>
inline constexpr bool is_standard_string<std::basic_string<char, std::char_traits<char>, A>> = true;

/// std::string, std::string_view and their like, unless they have a std::hash of their own: its author knows which of
/// them are equal.
template <class T>
concept String = is_standard_string<T> ||
    (std::convertible_to<const T&, std::string_view> && !std::is_invocable_v<std::hash<T>, const T&> &&
     requires { typename T::traits_type; });

/// Integers and enumerations, which hash to themselves. A 128-bit integer does not, and only some language modes count
/// it as an integer: a map must be the same in all of them.
template <class T>
concept Number = (std::integral<T> && sizeof(T) <= sizeof(std::uint64_t)) || std::is_enum_v<T>;

}  // namespace container

/// The default hasher: integers and enumerations as they are, strings by 64-bit multiplications, everything else by
/// std::hash. HashMap mixes what a hasher returns, so the results need not be well distributed, only different for
/// different keys.
struct HasherDefault {
  template <class T>
  [[nodiscard]] static std::uint64_t hash(const T& value) noexcept(
      std::is_nothrow_invocable_v<std::hash<T>, const T&>) {
    if constexpr (std::is_same_v<T, container::Wide> || std::is_same_v<T, container::SignedWide>) {
      // Numbers below 2^64 stay as they are.
      return static_cast<std::uint64_t>(value) ^
             container::fold_product(static_cast<std::uint64_t>(value >> 64), 0x243f'6a88'85a3'08d3);
    } else if constexpr (container::Number<T>) {
      return static_cast<std::uint64_t>(value);
    } else if constexpr (container::String<T>) {
      const std::string_view text = value;
      return container::hash_bytes(text.data(), text.size());
    } else {
      return std::hash<T>()(value);
    }
  }
};

/// The default equality of HashMap.
template <class T>
struct ComparatorDefault {
  [[nodiscard]] static bool compare(const T& a, const T& b) noexcept(noexcept(a == b)) { return a == b; }
};

}  // namespace blockyard

#endif
