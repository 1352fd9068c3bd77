/// Pools of equal blocks for C, statistics, and the report of what was never freed.
///
/// Bounds: allocate and free are O(1); one call in some hundreds takes a slab (O(1)), one in some hundred thousand asks
/// the operating system for a page (one madvise at most). Overhead: 64 bytes of table for each 32 KiB slab (0.2 %),
/// what is left at a slab's end (under an eighth, and under 1 % for blocks up to 300 bytes), and wholly free pages, of
/// which a pool keeps at most half of what it ever held at once. Nothing is stored in or beside a live block.
///
/// All blocks of a process lie in one window of 32 GiB of address space (less where a limit on address space is set);
/// beyond that, allocation fails.
#ifndef BLOCKYARD_BLOCK_H
#define BLOCKYARD_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "blockyard/detail/visibility.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct by_block_pool by_block_pool;

/// What a pool holds. Gathered when asked, by a walk over its slabs: O(slabs); allocating and freeing pay nothing for
/// it.
typedef struct by_block_statistics {
  size_t block_bytes;      ///< bytes from one block to the next; 0 in a sum over several sizes
  size_t live_blocks;      ///< allocated and not freed
  size_t live_bytes;       ///< their bytes
  size_t peak_blocks;      ///< most blocks in use at once, to the slab: never below the true peak
  size_t pages;            ///< pages taken from the operating system and not given back
  size_t held_bytes;       ///< their bytes; untouched memory in them is not resident
  size_t free_page_bytes;  ///< of those, in pages without any block
} by_block_statistics;

/// A pool of blocks of `size` bytes (1 to 1 MiB) aligned to `alignment` (a power of two up to 32 KiB, 0 means 16). A
/// pool is used by one thread at a time. NULL with errno EINVAL for other values, ENOMEM when memory is exhausted.
BY_API by_block_pool* by_block_pool_create(size_t size, size_t alignment);

/// Gives the pool and all its blocks back. NULL is a no-op.
BY_API void by_block_pool_destroy(by_block_pool* pool);

/// A block, contents unspecified; NULL with errno ENOMEM when memory is exhausted.
BY_API void* by_block_pool_alloc(by_block_pool* pool);

/// Gives a block of this pool back. NULL is a no-op.
BY_API void by_block_pool_free(by_block_pool* pool, void* block);

/// Frees all blocks at once: O(slabs).
BY_API void by_block_pool_reset(by_block_pool* pool);

/// Gives wholly free pages back to the operating system.
BY_API void by_block_pool_trim(by_block_pool* pool);

BY_API void by_block_pool_get_statistics(by_block_pool* pool, by_block_statistics* statistics);

/// The process-wide pools behind StaticBlockAllocator, all threads together: the one with blocks of `stride` bytes, or
/// for 0 the sum over all sizes. Other threads may run: the counts are then those of slightly different moments.
BY_API void by_static_block_get_statistics(size_t stride, by_block_statistics* statistics);

/// Gives wholly free pages back: those of the calling thread, and those left by threads that have ended.
BY_API void by_static_block_trim(void);

/// Writes a line for each type of which static blocks still live, with count and bytes, to `descriptor`, where types
/// are counted: with BLOCKYARD_LEAKS=1 or 2 in the environment, in checked processes, and where BLOCKYARD_COUNT_TYPES
/// is 1; elsewhere a line for each size, with the types of that size. Returns the number of live blocks. Allocates
/// nothing.
BY_API size_t by_block_leak_report(int descriptor);

/// Whether the report is written to standard error when the process ends normally (also by BLOCKYARD_LEAKS=1 or 2 in
/// the environment). Off at first; a forked child never writes it, since what its parent allocated is not the child's
/// to free.
BY_API void by_block_leak_report_at_exit(int enabled);

#ifdef __cplusplus
}
#endif
#endif
