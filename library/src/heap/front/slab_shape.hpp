// How long slabs are. A slab is cut from slices of 16 KiB. A class's first is one slice, and its tail wastes at most a
// quarter; from the third on a slab holds at least eight blocks, and its tail wastes at most an eighth.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heap/front/size_class.hpp"

namespace blockyard::heap {

/// A slice is the unit of the address range that slabs are cut in and that side tables are indexed by.
inline constexpr std::size_t slice_shift = 14;
inline constexpr std::size_t slice_bytes = std::size_t{1} << slice_shift;

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

}  // namespace blockyard::heap
