// Size classes of small blocks, and how long their slabs are. Classes: 16-byte steps up to 128 bytes, then four for
// each doubling. Rounding up wastes at most 15 bytes up to 128 bytes and at most a quarter above. With eight for each
// doubling it would be an eighth, but a frame would more often need a class that it has not used yet, which is what its
// allocations mostly wait for.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "pages/region.hpp"

namespace blockyard::heap {

using namespace pages;

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

/// The least class whose blocks hold `size` bytes, up to small_limit.
constexpr unsigned class_of(std::size_t size) {
  const std::size_t last = size - (size != 0 ? 1 : 0);
  if (last < 128) {
    return static_cast<unsigned>(last >> 4);
  }
  const unsigned doubling = static_cast<unsigned>(std::bit_width(last)) - 8;  // up to 256: 0, up to 512: 1
  return 4 + doubling * 4 + static_cast<unsigned>(last >> (doubling + 5));
}

static_assert(class_bytes(0) == 16 && class_bytes(7) == 128 && class_bytes(8) == 160);
static_assert(class_bytes(class_count - 1) == small_limit);
static_assert(class_of(small_limit) == class_count - 1);

/// With these is_multiple tells without a division whether a distance below 2^17 is a multiple of a class's bytes (D.
/// Lemire et al., "Faster remainder by direct computation", 2019).
inline constexpr std::array<std::uint32_t, class_count> class_inverses = [] {
  std::array<std::uint32_t, class_count> inverses{};
  for (unsigned index = 0; index < class_count; ++index) {
    inverses[index] = 0xFFFF'FFFFu / class_bytes(index) + 1;
  }
  return inverses;
}();
constexpr std::uint32_t class_inverse(unsigned index) { return class_inverses[index]; }
constexpr bool is_multiple(std::uint32_t distance, std::uint32_t inverse) { return distance * inverse < inverse; }

/// The smallest class whose blocks are all aligned so. A slab begins at a multiple of its slice, so the size of a block
/// must be a multiple of the alignment, as that of the least class that holds one is. class_count when no class serves.
constexpr unsigned aligned_class(std::size_t alignment, std::size_t size) {
  if (alignment > small_limit || size > small_limit) {
    return class_count;
  }
  return class_of(((size == 0 ? 1 : size) + alignment - 1) & ~(alignment - 1));
}

/// A class as tables hold it, in place of its number: where its cache entry stands in a ThreadHeap, in units of 8
/// bytes, so that no shift comes between a table and the entry. ThreadHeap alone knows what it means.
class CacheSlot {
 public:
  constexpr CacheSlot() = default;
  constexpr explicit CacheSlot(std::uint8_t byte) : word_(byte) {}

  static constexpr CacheSlot of_class(unsigned index) { return CacheSlot(static_cast<std::uint8_t>(2 * (index + 1))); }
  /// Of up to `looked_up_limit` bytes, by a table.
  static CacheSlot of_size(std::size_t size);

  constexpr std::uint8_t byte() const { return static_cast<std::uint8_t>(word_); }  ///< 0: no class
  constexpr unsigned size_class() const { return static_cast<unsigned>(word_ / 2) - 1; }
  constexpr explicit operator bool() const { return word_ != 0; }

 private:
  friend struct ThreadHeap;

  std::size_t word_ = 0;
};
/// Of blocks of 0 bytes, which come from elsewhere: a class that never has a block, so that no fast path asks for them.
inline constexpr unsigned empty_class = class_count;
static_assert(CacheSlot::of_class(empty_class).size_class() == empty_class);

/// The slot for each 16 bytes of size up to looked_up_limit: two cache lines, which are never cold. Nine of ten
/// allocations of games are that small. A table of all sizes would be a cold line whenever a larger one comes.
inline constexpr std::size_t looked_up_limit = 1024;
inline constexpr std::array<std::uint8_t, looked_up_limit / 16 + 1> slot_table = [] {
  std::array<std::uint8_t, looked_up_limit / 16 + 1> table{CacheSlot::of_class(empty_class).byte()};
  for (std::size_t each = 1; each < table.size(); ++each) {
    table[each] = CacheSlot::of_class(class_of(each * 16)).byte();
  }
  return table;
}();
inline CacheSlot CacheSlot::of_size(std::size_t size) { return CacheSlot(slot_table[(size + 15) / 16]); }

// Slabs are cut from slices of 16 KiB. A class's first is one slice, and its tail wastes at most a quarter; from the
// third on a slab holds at least eight blocks, and its tail wastes at most an eighth.
inline constexpr std::uint32_t most_slices = 4;  ///< of a slab
inline constexpr std::uint32_t held_before_long_slabs = 8;

/// Slices of the next slab of class `index`, of which a heap holds `held` slices already. First slabs are short: a
/// block of each of the 32 classes takes 512 KiB in each thread. A class in heavy use, from 128 KiB on, gets slabs of
/// 64 KiB: a quarter of the slow paths, and at most half as much again unused.
constexpr std::uint32_t next_slices(unsigned index, std::uint32_t held) {
  if (held >= held_before_long_slabs) {
    return most_slices;
  }
  const std::uint32_t bytes = class_bytes(index);
  return bytes <= 1024 || held == 0 ? 1 : bytes <= 2048 || held == 1 ? 2 : 4;
}
static_assert(next_slices(class_count - 1, 3) * slice_bytes / class_bytes(class_count - 1) == 8);
static_assert(next_slices(class_count - 1, 0) * slice_bytes / class_bytes(class_count - 1) >= 2);

/// Cached blocks of a class whose blocks go from thread to thread: at most 60 and at most 16 KiB, so that eight classes
/// of large blocks do not hold megabytes.
inline constexpr std::uint32_t most_cached = 60;
constexpr std::uint32_t cache_capacity(unsigned index) {
  return std::min(static_cast<std::uint32_t>(slice_bytes) / class_bytes(index), most_cached);
}

/// Classes whose blocks threads hand to one another by way of the depot: up to 2 KiB. Of longer ones a thread holds too
/// few for a magazine.
inline constexpr unsigned depot_classes = class_of(2048) + 1;

}  // namespace blockyard::heap
