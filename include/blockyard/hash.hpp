/// Hashers, comparators and the pair that maps hand out.
#ifndef BLOCKYARD_HASH_HPP
#define BLOCKYARD_HASH_HPP

#include <concepts>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

namespace blockyard {

/// What HashMap and RBMap keep and iterate over: a key that does not change, and its value.
template <class K, class V>
struct KeyValue {
  const K key;
  V value;

  template <class Key, class... Arguments>
  explicit KeyValue(std::in_place_t, Key&& from, Arguments&&... arguments)
      : key(std::forward<Key>(from)), value(std::forward<Arguments>(arguments)...) {}
};

/// The default hasher: integers, enumerations and pointers as they are, everything else by std::hash. Maps mix what a
/// hasher returns, so it need not be well distributed, only different for different keys.
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

#endif
