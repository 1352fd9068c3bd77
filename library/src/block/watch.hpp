// Watched pools: in a watched process, every allocate and free of a block takes the slow path, which checks or
// announces it, however the calling code was compiled.
//
// Pools are watched in a watched process (checks/watched.hpp), and when BLOCKYARD_LEAKS asks for reports.
//
// A watched pool never gives a slab to the fast path: the allocator's `current` stays at by_block_no_slab. With checks,
// freed blocks wait in a queue outside the blocks, so that all of their memory can be poison:
//   AddressSanitizer  poisons it, and reports any access with its stack
//   Valgrind          knows pools, allocations and frees
//   otherwise         a pattern fills it, which is compared when the block is handed out again: "use after free"
// A table says which blocks are live: "double free", "foreign free". A fault ends the process with a report.
#pragma once

#include <cstddef>

#include "base/threads.hpp"

namespace blockyard::block {

/// Of the watched static pools. The first of the locks.
extern constinit base::Mutex watched_lock;

struct Pool;
struct BlockSlab;
struct TypeRecord;

/// BLOCKYARD_LEAKS in the environment: 1 asks for leak reports, 2 for stacks too. 0 without it, and for any other
/// value, which is reported once.
int leaks_wanted();

/// Whether pools are watched. A load after the first call.
bool process_is_watched();

/// Makes a new pool a watched one; false when memory is exhausted.
bool watch_pool(Pool* pool);
void* watch_allocate(Pool* pool);
/// Frees a block that should be of this pool; of nullptr, an allocator that never had a block, none is. Of a static
/// block the caller may say instead in which slab it `supposed` it to lie, according to the size that it believes it
/// has.
void watch_free(const Pool* pool, const BlockSlab* supposed, void* block);
/// Undoes what an inline slab_put() did with a watched block.
void watch_undo_put(BlockSlab* slab);
void watch_reset(Pool* pool);
void watch_pool_ends(Pool* pool);
/// Blocks of the pool that wait in its queue.
std::size_t watch_waiting(const Pool* pool);

/// Sets the type of a live static block, for the leak report. The caller holds the lock of watched static pools.
void watch_type(const void* block, TypeRecord* type);

/// For tests of exhausted memory: in a watched process, allocations of blocks and of containers' arrays fail after
/// `more` further ones. Negative: none fails.
void watch_fail_after(long more);
/// Whether the current allocation must fail. Counts it.
bool watch_fails_now();

}  // namespace blockyard::block
