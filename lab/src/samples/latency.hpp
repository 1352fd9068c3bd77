// From rows to latencies: subtracts floors, compares repeats.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "samples/row.hpp"
#include "samples/samples.h"

namespace blockyard::samples {

inline constexpr std::uint32_t saturated = std::numeric_limits<std::uint32_t>::max();

/// Size classes of every table: up to 64 B, 1 KiB, 32 KiB, 1 MiB, larger.
inline constexpr std::size_t size_classes = 5;

inline std::size_t size_class(std::uint64_t size) {
  constexpr auto by_width = [] {
    std::array<std::uint8_t, 65> table{};
    for (std::size_t width = 0; width < table.size(); ++width) {
      table[width] = width <= 6 ? 0 : width <= 10 ? 1 : width <= 15 ? 2 : width <= 20 ? 3 : 4;
    }
    return table;
  }();
  return by_width[static_cast<std::size_t>(std::bit_width(size == 0 ? 0 : size - 1))];
}

/// Whether attributed counts an event that the machine interrupted in `struck` of `runs` repeats, with its minimum in
/// each. The machine interrupts at random, so what happens every time belongs to the event; of a lone repeat nothing
/// can be known.
inline bool returns(std::size_t struck, std::size_t runs) { return struck == runs && runs > 1; }

/// How the repeats of one event are combined.
enum class View : std::uint32_t {
  as_run = 0,      ///< every repeat as it came
  inherent = 1,    ///< per event the minimum over all repeats
  attributed = 2,  ///< as run, less the events that the machine interrupted; see returns()
};

using Run = by_samples_run;

inline const Row& row_of(const Run& run, std::uint64_t number) { return static_cast<const Row*>(run.rows)[number]; }

/// What an event took in one run, in the group's ticks, less the floors.
struct Latency {
  std::uint32_t call;
  std::uint32_t touch;  ///< meaningless unless `touched`
  std::uint32_t both;
  bool touched;
};

inline std::uint32_t net(std::uint32_t raw, std::uint32_t floor, double scale) {
  if (raw == saturated) return saturated;
  const std::uint32_t ticks = raw > floor ? raw - floor : 0;
  if (scale == 1.0) return ticks;
  // To the nearest, as std::nearbyint(), which is a call: numbers of this size have no place for a fraction.
  constexpr double whole = 1ULL << 52;
  const double scaled = (ticks * scale + whole) - whole;
  return scaled < saturated ? static_cast<std::uint32_t>(scaled) : saturated;
}

inline std::uint32_t saturating_sum(std::uint32_t left, std::uint32_t right) {
  const std::uint32_t sum = left + right;
  return sum < left ? saturated : sum;
}

inline Latency latency(const Row& row, const Run& run) {
  Latency result;
  result.call = net(row.call, run.floor_call, run.scale);
  result.touched = row.touch != 0;
  result.touch = result.touched ? net(row.touch, run.floor_touch, run.scale) : 0;
  result.both = saturating_sum(result.call, result.touch);
  return result;
}

/// Lowers the per-event minimum. `both` is the minimum of sums, so it is a latency that did occur.
inline void lower(Latency& least, const Latency& other) {
  least.call = other.call < least.call ? other.call : least.call;
  least.both = other.both < least.both ? other.both : least.both;
  if (other.touched && (!least.touched || other.touch < least.touch)) least.touch = other.touch;
  least.touched = least.touched || other.touched;
}

}  // namespace blockyard::samples
