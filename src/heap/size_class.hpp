// Size classes of small blocks: 16-byte steps up to 128 bytes, then eight classes a doubling, so that rounding up
// wastes at most 12.5 % above 128 bytes (and at most 15 bytes below).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace blockyard::heap {

inline constexpr std::size_t block_alignment = 16;  ///< bytes; every block is aligned at least so
inline constexpr std::size_t small_limit = 8192;    ///< bytes; larger blocks are runs of whole pages
inline constexpr unsigned class_count = 8 + 6 * 8;  ///< 16..128 by 16, then 8 each for 256, 512, 1K, 2K, 4K, 8K

/// Bytes of a block of class `index`.
constexpr std::uint32_t class_bytes(unsigned index) {
  if (index < 8) {
    return (index + 1) * 16;
  }
  const unsigned doubling = (index - 8) / 8;  // 0: up to 256
  const unsigned step = (index - 8) % 8 + 1;
  return (128u << doubling) + step * (16u << doubling);
}

/// The least class whose blocks hold `size` bytes, computed; the lookup below is what the fast path reads.
constexpr unsigned class_of_computed(std::size_t size) {
  if (size <= 128) {
    return size == 0 ? 0 : static_cast<unsigned>((size - 1) / 16);
  }
  const unsigned doubling = static_cast<unsigned>(std::bit_width(size - 1)) - 8;  // 129..256: 0
  const std::size_t base = std::size_t{128} << doubling;
  const std::size_t step = std::size_t{16} << doubling;
  return 8 + doubling * 8 + static_cast<unsigned>((size - base - 1) / step);
}

/// One byte for each 16 bytes of size: 513 bytes, of which a program touches the few lines of the sizes it uses.
inline constexpr std::array<std::uint8_t, small_limit / 16 + 1> class_table = [] {
  std::array<std::uint8_t, small_limit / 16 + 1> table{};
  for (std::size_t slot = 0; slot < table.size(); ++slot) {
    table[slot] = static_cast<std::uint8_t>(class_of_computed(slot * 16));
  }
  return table;
}();

/// Class of a size up to small_limit.
inline unsigned class_of(std::size_t size) { return class_table[(size + 15) / 16]; }

static_assert(class_bytes(0) == 16 && class_bytes(7) == 128 && class_bytes(8) == 144);
static_assert(class_bytes(class_count - 1) == small_limit);
static_assert(class_of_computed(small_limit) == class_count - 1);
static_assert([] {
  for (std::size_t size = 1; size <= small_limit; ++size) {
    const unsigned index = class_of_computed(size);
    if (class_bytes(index) < size || (index > 0 && class_bytes(index - 1) >= size)) {
      return false;
    }
    if (size > 128 && (class_bytes(index) - size) * 8 > size) {
      return false;
    }
  }
  return true;
}());

/// Slabs are cut from pages in granules; a slab holds at least eight blocks, so that its tail wastes at most 1/8.
inline constexpr std::size_t granule_shift = 14;
inline constexpr std::size_t granule_bytes = std::size_t{1} << granule_shift;

/// Granules of a slab of class `index`: 16 KiB up to 1 KiB blocks, then twice and four times that. One granule keeps
/// the first slab of every class small (56 classes in use hold 0.9 MiB at most a thread) and lets the ready stack hold
/// one kind.
constexpr std::uint32_t class_granules(unsigned index) {
  const std::uint32_t bytes = class_bytes(index);
  return bytes <= 1024 ? 1 : bytes <= 2048 ? 2 : 4;
}
inline constexpr std::uint32_t most_granules = 4;

}  // namespace blockyard::heap
