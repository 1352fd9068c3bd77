// What a program may set, by API or by environment (BLOCKYARD_HEAP_...), read once at the heap's first use.
#pragma once

#include <cstddef>
#include <cstdint>

namespace blockyard::heap {

struct Settings {
  std::size_t reserve_bytes = std::size_t{4} << 20;  ///< BLOCKYARD_HEAP_RESERVE: populated memory kept waiting
  std::uint32_t ready_slabs = 64;                    ///< BLOCKYARD_HEAP_READY_SLABS: of 16 KiB, part of the reserve
  std::uint32_t period_us = 1000;                    ///< BLOCKYARD_HEAP_PERIOD: the janitor's round while there is work
  std::uint32_t purge_ms = 500;                      ///< BLOCKYARD_HEAP_PURGE: age of free memory before it goes back
  bool janitor = true;                               ///< BLOCKYARD_HEAP_JANITOR=0: by_frame_end does its work
  bool huge_pages = true;                            ///< BLOCKYARD_HEAP_HUGE_PAGES: ask for transparent huge pages
  bool show = false;                                 ///< BLOCKYARD_HEAP_SHOW=1: print the settings at start
};

extern Settings settings;

/// Reads the environment; unknown values keep the default and are said on standard error. Allocates nothing.
void read_settings();
/// Prints every setting, one a line, on standard error.
void show_settings();

}  // namespace blockyard::heap
