// Blocks of 0 bytes: addresses that differ from every other block's, in pages that nobody may touch. A program that
// reads or writes such a block has a fault there and then.
//
// Overhead: 4 bytes a block. Thread-safe, lock-free; O(1).
#pragma once

namespace blockyard::heap {

/// A block of 0 bytes at a multiple of block_alignment. Null: 65,535 live, or there is no address space for them.
void* take_empty_block();

/// Whether the address lies where such blocks do.
bool is_among_empty_blocks(const void* pointer);

/// Whether it is such a block and was not freed.
bool is_live_empty_block(const void* pointer);

/// Frees one. Reports a pointer that is no live one. is_among_empty_blocks() holds for it.
void give_empty_block(const void* block);

}  // namespace blockyard::heap
