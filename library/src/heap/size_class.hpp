// Size classes of small blocks: 16-byte steps up to 128 bytes, then four classes a doubling, so that rounding up takes
// at most a quarter above 128 bytes (and at most 15 bytes below). Eight a doubling would take an eighth; but what a
// game's allocation waits for is mostly a class that its frame has not used yet, and fewer classes are fewer of those.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace blockyard::heap {

inline constexpr std::size_t block_alignment = 16;  ///< bytes; every block is aligned at least so
inline constexpr std::size_t small_limit = 8192;    ///< bytes; larger blocks are runs of whole pages
inline constexpr unsigned class_count = 8 + 6 * 4;  ///< 16..128 by 16, then 4 each to 256, 512, 1K, 2K, 4K, 8K

/// Bytes of a block of class `index`.
constexpr std::uint32_t class_bytes(unsigned index) {
  if (index < 8) {
    return (index + 1) * 16;
  }
  const unsigned doubling = (index - 8) / 4;  // 0: up to 256
  const unsigned step = (index - 8) % 4 + 1;
  return (128u << doubling) + step * (32u << doubling);
}

/// The least class whose blocks hold `size` bytes, up to small_limit, computed.
constexpr unsigned class_of_computed(std::size_t size) {
  const std::size_t last = size - (size != 0 ? 1 : 0);
  if (last < 128) {
    return static_cast<unsigned>(last >> 4);
  }
  const unsigned doubling = static_cast<unsigned>(std::bit_width(last)) - 8;  // up to 256: 0, up to 512: 1
  return 4 + doubling * 4 + static_cast<unsigned>(last >> (doubling + 5));
}

inline constexpr std::size_t looked_up_limit = 1024;

/// Where what a thread needs for class `index` stands in its heap (ThreadHeap::rows), in units of 8 bytes: what the
/// tables say in place of the class, so that no shift comes between them and the row. 0 is no class.
constexpr std::uint8_t row_place(unsigned index) { return static_cast<std::uint8_t>(2 * (index + 1)); }
constexpr unsigned class_at(std::size_t place) { return static_cast<unsigned>(place / 2) - 1; }
static_assert(class_at(row_place(class_count - 1)) == class_count - 1);

/// The row_place of the class for each 16 bytes of size up to looked_up_limit: two cache lines, which are never cold.
/// Nine of ten allocations of games are that small; a table of all sizes would be a cold line whenever a larger one
/// comes.
inline constexpr std::array<std::uint8_t, looked_up_limit / 16 + 1> place_table = [] {
  std::array<std::uint8_t, looked_up_limit / 16 + 1> table{};
  for (std::size_t slot = 0; slot < table.size(); ++slot) {
    table[slot] = row_place(class_of_computed(slot * 16));
  }
  return table;
}();

/// Class of a size up to small_limit.
inline unsigned class_of(std::size_t size) {
  return size <= looked_up_limit ? class_at(place_table[(size + 15) / 16]) : class_of_computed(size);
}

static_assert(class_bytes(0) == 16 && class_bytes(7) == 128 && class_bytes(8) == 160);
static_assert(class_bytes(class_count - 1) == small_limit);
static_assert(class_of_computed(small_limit) == class_count - 1);
static_assert([] {
  for (std::size_t size = 1; size <= small_limit; ++size) {
    const unsigned index = class_of_computed(size);
    if (class_bytes(index) < size || (index > 0 && class_bytes(index - 1) >= size)) {
      return false;
    }
    if (size > 128 && (class_bytes(index) - size) * 4 > size) {
      return false;
    }
  }
  return true;
}());

/// Slabs are cut from pages in granules; a slab holds at least eight blocks, so that its tail wastes at most 1/8.
inline constexpr std::size_t granule_shift = 14;
inline constexpr std::size_t granule_bytes = std::size_t{1} << granule_shift;

/// Granules of the first slabs of class `index`: 16 KiB up to 1 KiB blocks, then twice and four times that. One granule
/// keeps the first slab of every class small: 32 classes in use hold 1 MiB at most a thread.
constexpr std::uint32_t first_granules(unsigned index) {
  const std::uint32_t bytes = class_bytes(index);
  return bytes <= 1024 ? 1 : bytes <= 2048 ? 2 : 4;
}

/// Granules of the slabs of a class that holds `held` granules already: 64 KiB from 128 KiB on, so that a class in
/// heavy use takes a fourth of the slow paths and at most half as much again stands unused.
inline constexpr std::uint32_t most_granules = 4;
inline constexpr std::uint32_t held_before_long_slabs = 8;
constexpr std::uint32_t next_granules(unsigned index, std::uint32_t held) {
  return held >= held_before_long_slabs ? most_granules : first_granules(index);
}

/// Freed blocks that a thread keeps at hand, out of their slabs: see Bin. At most 16 KiB a class, so that eight classes
/// of large blocks do not hold megabytes.
inline constexpr std::uint32_t most_at_hand = 60;
constexpr std::uint32_t at_hand_capacity(unsigned index) {
  const std::uint32_t fitting = static_cast<std::uint32_t>(granule_bytes) / class_bytes(index);
  return fitting < most_at_hand ? fitting : most_at_hand;
}

/// Classes that threads hand blocks of to one another, by way of the depot: up to 2 KiB. Of longer ones a thread holds
/// too few for a magazine to be worth it.
inline constexpr unsigned depot_classes = 8 + 4 * 4;
static_assert(class_bytes(depot_classes - 1) == 2048);

/// What a thread keeps at hand of a class as long as it has handed none over to another: a longer row of blocks lies on
/// more cache lines, and between threads only it saves more than that costs.
inline constexpr std::uint32_t most_at_hand_at_first = 12;
constexpr std::uint32_t at_hand_at_first(unsigned index) {
  const std::uint32_t capacity = at_hand_capacity(index);
  return capacity < most_at_hand_at_first ? capacity : most_at_hand_at_first;
}

}  // namespace blockyard::heap
