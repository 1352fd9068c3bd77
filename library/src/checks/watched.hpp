// Memory that no access may touch, in processes with checks: by AddressSanitizer's or Valgrind's means where one of
// them is there, else by a pattern.
//
// A process has checks in a checked build (BLOCKYARD_CHECKED), with AddressSanitizer, under Valgrind, or with
// BLOCKYARD_CHECKS=1 in the environment. It is decided once, before the first block. Without checks nothing here does
// anything.
//
// Watched processes: every allocation and free of a block takes the slow path, which checks or announces it, however
// the calling code was compiled. A process is watched when it has checks, or when a recorder
// listens to its blocks (base/observer.hpp, in builds with BLOCKYARD_OBSERVED). Decided once, before the first block.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/observer.hpp"
#include "base/once.hpp"

namespace blockyard::checks {

/// What fills memory.
inline constexpr unsigned char fresh_byte = 0xCD;   ///< a new block
inline constexpr unsigned char around_byte = 0xFA;  ///< before and behind a block
inline constexpr unsigned char freed_byte = 0xDD;   ///< no block

/// Whether all bytes from `from` to `to` are `byte`.
inline bool is_filled(const void* from, const void* to, unsigned char byte) {
  return std::all_of(static_cast<const unsigned char*>(from), static_cast<const unsigned char*>(to),
                     [=](unsigned char each) { return each == byte; });
}

/// Whether the process has checks. A load after the first call.
bool are_on();
/// Whether hide() fills memory with freed_byte and nothing reports an access: with neither of the two tools.
bool fill_hidden();

/// Hides memory that holds no block: an access is reported where it happens, or a write is found later.
void hide(void* memory, std::size_t bytes);
/// Makes memory usable again. Its contents are unspecified; Valgrind regards them as not initialised.
void show(void* memory, std::size_t bytes);
/// The same, and fills it with fresh_byte.
void show_fresh(void* memory, std::size_t bytes);
/// Where fill_hidden(): reports the first byte of hidden memory that was written to. O(bytes).
void check_untouched(const void* memory, std::size_t bytes);

/// The recorder that listens to blocks, or nullptr.
const base::Observer* listener();
inline bool is_watched() {
  static constinit base::Once<bool> watched;
  return watched.get([] { return are_on() || listener() != nullptr; });
}

/// Report a block to the recorder, if one listens.
void announce_allocated(const void* block, std::size_t size, std::size_t alignment);
void announce_freed(const void* block);

}  // namespace blockyard::checks
