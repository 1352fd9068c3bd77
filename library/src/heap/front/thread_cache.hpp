// The thread cache: how many freed blocks of each class a thread keeps, and where a class has its entry.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "heap/size_class.hpp"

namespace blockyard::heap {

/// Cached blocks of a class whose blocks go from thread to thread: at most 60 and at most 16 KiB, so that eight classes
/// of large blocks do not hold megabytes.
inline constexpr std::uint32_t most_cached = 60;
constexpr std::uint32_t cache_capacity(unsigned index) {
  return std::min(static_cast<std::uint32_t>(slice_bytes) / class_bytes(index), most_cached);
}

/// Cached blocks of a class as long as the thread has handed none of it over to another. More would lie on more cache
/// lines, and only between threads does it save more than that costs.
inline constexpr std::uint32_t most_in_bin = 12;
constexpr std::uint32_t first_cache_limit(unsigned index) { return std::min(cache_capacity(index), most_in_bin); }

/// Cached blocks of a class of which the thread frees and allocates more in turn: it needs no slab for them then. At
/// most 64 KiB.
inline constexpr std::uint32_t most_in_turn = 1024;
constexpr std::uint32_t capacity_in_turn(unsigned index) {
  constexpr std::uint32_t bytes = 64u << 10;
  return std::max(cache_capacity(index), std::min(bytes / class_bytes(index), most_in_turn));
}
/// So many frees in a row that find the cache full come of such turns. Where mallocs and frees come in no order, one in
/// a hundred of such rows is as long.
inline constexpr std::uint32_t least_turn = 64;

/// Classes whose blocks threads hand to one another by way of the depot: up to 2 KiB. Of longer ones a thread holds too
/// few for a magazine.
inline constexpr unsigned depot_classes = class_of(2048) + 1;

/// Where the extended cache of class `index` begins among those of a heap, in blocks; of depot_classes: where they end.
constexpr std::uint32_t extended_begin(unsigned index) {
  std::uint32_t begin = 0;
  for (unsigned before = 0; before < index; ++before) {
    begin += capacity_in_turn(before);
  }
  return begin;
}
inline constexpr std::array<std::uint16_t, depot_classes> extended_begins = [] {
  std::array<std::uint16_t, depot_classes> begins{};
  for (unsigned index = 0; index < depot_classes; ++index) {
    begins[index] = static_cast<std::uint16_t>(extended_begin(index));
  }
  return begins;
}();

}  // namespace blockyard::heap
