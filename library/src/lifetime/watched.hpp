// Processes in which blocks of lifetimes are checked or announced: there every call takes the slow path.
//
// Checked are the processes in which the block pools are (block/watch.hpp): checked builds, AddressSanitizer, Valgrind,
// BLOCKYARD_CHECK=1. Observed is a process whose recorder listens for blocks (base/observer.hpp). Both are decided
// once, before the first block.
#pragma once

#include <cstddef>

namespace blockyard::lifetime {

bool is_checked();
bool is_observed();
inline bool is_watched() { return is_checked() || is_observed(); }

/// What memory is filled with in checked processes.
inline constexpr unsigned char fresh_pattern = 0xcd;  ///< a block that nobody wrote to yet
inline constexpr unsigned char dead_pattern = 0xdd;   ///< no block

/// In a checked process: fills memory that holds no block with dead_pattern, or poisons it under AddressSanitizer and
/// Valgrind.
void hide(void* memory, std::size_t bytes);
/// Whether hide() fills: a checked process in which nobody else watches memory.
bool fills_hidden();
/// Where fills_hidden(): ends the process with a sentence when memory that was hidden was written to since.
void check_untouched(const void* memory, std::size_t bytes);
/// In a checked process: makes memory usable; its contents are unspecified.
void show(void* memory, std::size_t bytes);
/// In a checked process: as show(), and fills it with fresh_pattern.
void show_fresh(void* memory, std::size_t bytes);

/// Tell a recorder that listens.
void announce_allocated(const void* block, std::size_t size, std::size_t alignment);
void announce_freed(const void* block);

}  // namespace blockyard::lifetime
