// What a program may set, by API or by environment (BLOCKYARD_HEAP_...), which is read once, at the heap's first use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "blockyard/detail/relaxed.hpp"

namespace blockyard::heap {

using block::Relaxed;

/// The background thread's clock counts ticks of so many milliseconds, in 16 bits that wrap.
inline constexpr std::uint64_t tick_ms = 16;

struct Settings {
  Relaxed<std::uint64_t> reserve_bytes = std::size_t{4} << 20;  ///< BLOCKYARD_HEAP_RESERVE: populated, kept waiting
  Relaxed<std::uint64_t> ready_slabs = 64;  ///< BLOCKYARD_HEAP_READY_SLABS: of 16 KiB, cut in advance
  Relaxed<std::uint64_t> period_us =
      1000;                               ///< BLOCKYARD_HEAP_PERIOD: the background thread's round while there is work
  Relaxed<std::uint64_t> purge_ms = 500;  ///< BLOCKYARD_HEAP_PURGE: time without need, after which memory goes back
  Relaxed<std::uint64_t> janitor = 1;     ///< BLOCKYARD_HEAP_JANITOR=0: by_heap_frame_end does its work
  Relaxed<bool> reserve_is_set = false;   ///< by the environment or the program, so it is kept from the start
#if BLOCKYARD_CHECKED
  Relaxed<bool> guard = true;
  Relaxed<std::uint32_t> guard_sample = 512;
#else
  Relaxed<bool> guard = false;                 ///< BLOCKYARD_HEAP_GUARD
  Relaxed<std::uint32_t> guard_sample = 5000;  ///< BLOCKYARD_HEAP_GUARD_SAMPLE: one block in so many; 0: none
#endif
  Relaxed<std::uint64_t> huge_pages = 1;  ///< BLOCKYARD_HEAP_HUGE_PAGES: ask for transparent huge pages

  /// purge_ms in ticks.
  std::uint16_t purge_ticks() const { return static_cast<std::uint16_t>(purge_ms / tick_ms); }
};

extern Settings settings;

/// Reads the environment; a value that does not serve keeps the default, which is said on standard error. Prints every
/// setting there, one a line, where BLOCKYARD_HEAP_SHOW=1. Allocates nothing.
void read_settings();

/// By by_heap_setting's number: whether a value may be set, setting it, and reading it (0 where there is no such
/// setting).
bool is_in_range(std::size_t which, std::uint64_t value);
void set_setting(std::size_t which, std::uint64_t value);
std::uint64_t get_setting(std::size_t which);

}  // namespace blockyard::heap
