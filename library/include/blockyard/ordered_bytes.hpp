/// OrderedBytes: keys of RBMap and RBSet that are ordered as strings of bytes.
///
/// Tree nodes hold 8 bytes of each such key, those behind the bytes that all keys of the node share. A search compares
/// these as one number, and looks at an element only where they are equal.
#ifndef BLOCKYARD_ORDERED_BYTES_HPP
#define BLOCKYARD_ORDERED_BYTES_HPP

#include "blockyard/detail/cpp20.hpp"

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace blockyard {

/// Specialise it for a type of your own. `of(key)` returns bytes that live, unchanged, as long as the key. It must hold
/// for all keys that `a < b` is the order of their bytes: as unsigned numbers, and what begins another comes before it.
/// So keys with the same bytes are equal. Used with the default comparator only. It must not throw.
template <class K>
struct OrderedBytes;

template <>
struct OrderedBytes<std::string> {
  [[nodiscard]] static std::string_view of(const std::string& key) noexcept { return key; }
};
template <>
struct OrderedBytes<std::string_view> {
  [[nodiscard]] static std::string_view of(std::string_view key) noexcept { return key; }
};

namespace container {

template <class K>
concept HasOrderedBytes = requires(const K& key) {
  { OrderedBytes<K>::of(key) }
  noexcept->std::same_as<std::string_view>;
};

/// The 8 bytes of a key from `skip` on as a number in the order of the bytes. Zeros stand for those behind its end, so
/// the words of different keys may be equal.
inline std::uint64_t word_at(std::string_view key, std::size_t skip) noexcept {
  constexpr std::size_t whole = sizeof(std::uint64_t);
  const auto number = [](const char* bytes) {
    std::uint64_t word;
    std::memcpy(&word, bytes, sizeof word);
    return std::endian::native == std::endian::little ? __builtin_bswap64(word) : word;
  };
  if (key.size() >= skip + whole) [[likely]] {
    return number(key.data() + skip);
  }
  if (key.size() <= skip) {
    return 0;
  }
  if (key.size() >= whole) {
    // The last 8 bytes, without those before `skip`.
    return number(key.data() + key.size() - whole) << (8 * (skip + whole - key.size()));
  }
  char padded[whole] = {};
  std::copy(key.begin() + static_cast<std::ptrdiff_t>(skip), key.end(), padded);
  return number(padded);
}

/// How many bytes two keys begin with in common. O(of them).
inline std::size_t shared_bytes(std::string_view a, std::string_view b) noexcept {
  const auto shorter = static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.begin() + shorter, b.begin()).first - a.begin());
}

}  // namespace container
}  // namespace blockyard

#endif
