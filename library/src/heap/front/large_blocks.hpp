// Blocks above small_limit: runs of whole pages. A thread caches a freed one of each of a few lengths.
//
// Blocks of 0 bytes: addresses that differ from every other block's, in the region's first bytes, which are never
// mapped. A program that reads or writes such a block has a fault there and then.
//
// Overhead: 4 bytes a block. Thread-safe, lock-free; O(1).
#pragma once

#include <cstddef>

#include "heap/front/thread_heap.hpp"

namespace blockyard::heap {

/// A block of whole pages out of the calling thread's cache; null: it has none that fits.
void* take_cached_run(std::size_t size);

/// A block of whole pages, of `arena` when that is not null. `*zeroed` tells whether the operating system has just
/// zeroed it. Null when memory is exhausted, or the heap was never readied.
void* take_run(std::size_t size, std::size_t alignment, bool* zeroed, ThreadHeap* arena);

/// Sets a block of any length to zero. A long one goes back to the operating system, which gives zeroed pages as they
/// are touched: who asks for gigabytes by calloc may touch few of them. O(bytes) up to zeroed_limit.
void clear_run(void* block, std::size_t size);
inline constexpr std::size_t zeroed_limit = std::size_t{4} << 20;

/// Whether such a block begins at `pointer`, which lies in the region in no slab.
bool is_live_run(const void* pointer);

/// Frees a block that lies in the region in no slab; what is no live block is reported.
void free_run(void* block);

/// Frees all such blocks of an arena. O(blocks).
void free_runs_of(ThreadHeap* arena);

/// Resizes such a block in place, to `size` bytes above small_limit. False: it has to move.
bool resize_run(void* block, std::size_t size);
/// The same where it can't move, as no other run is long enough: waits for the background thread's round to end.
bool grow_run_at_limit(void* block, std::size_t size);

/// Bytes of such a block.
inline std::size_t run_bytes(const void* block) {
  return std::size_t{region.pages[region.page_of(block)].length} << page_shift;
}

/// A block of 0 bytes at a multiple of block_alignment. Null: 65,535 live, or the heap was never readied.
void* take_empty_block();

/// Whether the address, which lies in the region, is where such blocks are.
bool is_among_empty_blocks(const void* pointer);

/// Its bytes, 0. Reports a pointer into the region that is no live one.
std::size_t usable_of_empty_block(const void* pointer);

/// Frees one. Reports a pointer that is no live one. is_among_empty_blocks() holds for it, a multiple of
/// block_alignment.
void give_empty_block(const void* block);

}  // namespace blockyard::heap
