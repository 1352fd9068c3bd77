// Watched processes, in which blocks of lifetimes are checked or announced: every call takes the slow path there.
//
// A process has checks when its block pools have (block/watch.hpp): in checked builds, with AddressSanitizer, under
// Valgrind, with BLOCKYARD_CHECKS=1. It is observed when a recorder listens to its blocks (base/observer.hpp). Both are
// decided once, before the first block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "block/watch.hpp"

namespace blockyard::lifetime {

inline bool has_checks() { return block::process_has_checks(); }
bool is_observed();
inline bool is_watched() {
  static const bool watched = has_checks() || is_observed();
  return watched;
}

/// What fills memory in a process with checks.
inline constexpr unsigned char fresh_pattern = 0xcd;  ///< a new block
inline constexpr unsigned char dead_pattern = 0xdd;   ///< no block

/// In a process with checks: hides memory that holds no block (base/poison.hpp).
void hide(void* memory, std::size_t bytes);
/// Whether hide() fills memory with dead_pattern: in a process with checks and without AddressSanitizer or Valgrind.
bool fills_hidden();
/// Where fills_hidden(): ends the process with a sentence if hidden memory was written to.
void check_untouched(const void* memory, std::size_t bytes);
/// In a process with checks: makes memory usable; its contents are unspecified.
void show(void* memory, std::size_t bytes);
/// In a process with checks: as show(), and fills it with fresh_pattern.
void show_fresh(void* memory, std::size_t bytes);

/// Has the system provide up to 32 KiB of memory that holds no block yet; none in a watched process, which hides it.
void touch_ahead(std::uintptr_t begin, std::uintptr_t end);

/// Report a block to the recorder, if one listens.
void announce_allocated(const void* block, std::size_t size, std::size_t alignment);
void announce_freed(const void* block);

}  // namespace blockyard::lifetime
