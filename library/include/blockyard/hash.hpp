/// The default hasher and comparator of HashMap, and KeyValue, the entry of HashMap and RBMap.
#ifndef BLOCKYARD_HASH_HPP
#define BLOCKYARD_HASH_HPP

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace blockyard {

/// An entry of HashMap and RBMap: a key that does not change, and its value.
template <class K, class V>
struct KeyValue {
  const K key;
  V value;

  template <class Key, class... Arguments>
  explicit KeyValue(std::in_place_t, Key&& from, Arguments&&... arguments)
      : key(std::forward<Key>(from)), value(std::forward<Arguments>(arguments)...) {}

  // For structured bindings: auto& [key, value].
  template <std::size_t I>
  [[nodiscard]] auto& get() noexcept {
    if constexpr (I == 0) {
      return key;
    } else {
      return value;
    }
  }
  template <std::size_t I>
  [[nodiscard]] const auto& get() const noexcept {
    if constexpr (I == 0) {
      return key;
    } else {
      return value;
    }
  }
};

/// The default hasher: integers and enumerations as they are, everything else by std::hash. HashMap mixes what a hasher
/// returns, so the results need not be well distributed, only different for different keys.
struct HasherDefault {
  template <class T>
  [[nodiscard]] static std::uint64_t hash(const T& value) noexcept(noexcept(std::hash<T>()(value))) {
    if constexpr (std::integral<T> || std::is_enum_v<T>) {
      return static_cast<std::uint64_t>(value);
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

template <class K, class V>
struct std::tuple_size<blockyard::KeyValue<K, V>> : std::integral_constant<std::size_t, 2> {};
template <class K, class V>
struct std::tuple_element<0, blockyard::KeyValue<K, V>> {
  using type = const K;
};
template <class K, class V>
struct std::tuple_element<1, blockyard::KeyValue<K, V>> {
  using type = V;
};

#endif
