/// Pools of blocks of one size for C, their statistics, and the report of blocks that were never freed.
///
/// Terms. A *block* is one allocation of the pool's size. A *stride* is the number of bytes from one block to the next:
/// the size, rounded up for alignment. A pool cuts blocks from *slabs* of 32 KiB or more, and takes *pages* of one or
/// more slabs from the operating system. All blocks of a process lie in one *window* of address space.
///
/// Time: allocate and free are O(1). One call in some hundreds takes a slab, also O(1). One in some hundred thousand
/// calls the operating system, for a page: one or two calls.
///
/// Memory: nothing is stored in or beside a live block. Tables take 120 bytes per 32 KiB. The end of a slab may be left
/// over: under an eighth of it, under 1 % for blocks up to 300 bytes. A pool keeps free pages up to half of the most it
/// ever held, or up to 256 KiB. Where a process held more than 8 MiB of blocks, a background thread gives back what is
/// unused for some quarters of a second, and ends when nothing is left to give; a pool then keeps what lies in the page
/// in use, up to 4 MiB. BLOCKYARD_HEAP_JANITOR=0 forbids the thread. On Windows, what is given back is committed again
/// at once.
///
/// Limits: blocks of 1 MiB, alignments of 32 KiB, and 32 GiB for all blocks of the process: less under a limit on
/// address space (`ulimit -v`), 16 GiB for strides that are no multiple of 8. Beyond that, allocation fails.
///
/// Sizes are in bytes.
#ifndef BLOCKYARD_BLOCK_H
#define BLOCKYARD_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "blockyard/detail/visibility.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A pool. One thread at a time uses it; which one may change.
typedef struct by_block_pool by_block_pool;

/// What a pool holds. A walk over its slabs counts it, O(slabs), so that allocate and free need not.
typedef struct by_block_statistics {
  size_t block_bytes;      ///< the stride, bytes; 0 in a sum over several strides
  size_t live_blocks;      ///< allocated and not freed
  size_t live_bytes;       ///< their bytes
  size_t peak_blocks;      ///< most blocks in use at once, counted by the slab: never below the true peak
  size_t pages;            ///< pages taken from the operating system and not given back
  size_t held_bytes;       ///< their bytes; memory in them that was never touched is not resident
  size_t free_page_bytes;  ///< bytes of those pages that hold no block; they may not be resident
  const char* name;        ///< as by_block_pool_set_name() gave it, or NULL; static pools and sums have none
} by_block_statistics;

/// Makes a pool of blocks of `size` bytes, 1 to 1 MiB, at `alignment`, a power of two up to 32 KiB; 0 means 16.
/// The caller owns it. NULL with errno EINVAL for other values, ENOMEM when memory is exhausted. Any thread.
BY_API by_block_pool* by_block_pool_create(size_t size, size_t alignment);

/// Names the pool: by_block_leak_report() then says how many of its blocks are live. `name` must live as long as the
/// pool. Any thread.
BY_API void by_block_pool_set_name(by_block_pool* pool, const char* name);

/// Destroys the pool and gives all its blocks back, live ones too. NULL is a no-op. O(slabs), calls the operating
/// system.
BY_API void by_block_pool_destroy(by_block_pool* pool);

/// Allocates a block, contents unspecified. NULL with errno ENOMEM when memory is exhausted. O(1).
BY_API void* by_block_pool_alloc(by_block_pool* pool);

/// Frees a block of this pool. NULL is a no-op. O(1).
BY_API void by_block_pool_free(by_block_pool* pool, void* block);

/// Frees all blocks at once. O(slabs); may call the operating system.
BY_API void by_block_pool_reset(by_block_pool* pool);

/// Gives every wholly free page back to the operating system. O(slabs).
BY_API void by_block_pool_trim(by_block_pool* pool);

/// Fills `*statistics`. O(slabs); the pool's thread.
BY_API void by_block_pool_get_statistics(by_block_pool* pool, by_block_statistics* statistics);

/// The same of the static pools (static_block_allocator.hpp), all threads together: of the pool with this stride, or
/// with 0 the sum over all. O(slabs of the process), any thread. While other threads allocate, the figures are those of
/// slightly different moments.
BY_API void by_static_block_get_statistics(size_t stride, by_block_statistics* statistics);

/// Gives wholly free pages of the static pools back to the operating system: those of the calling thread, and those
/// that threads left when they ended. O(their slabs), any thread.
BY_API void by_static_block_trim(void);

/// Writes which static blocks are live to the file descriptor and returns how many there are. One line per type, with
/// count and bytes, where types are counted: with BLOCKYARD_LEAKS=1 or 2 in the environment, with checks, and
/// in code compiled with BLOCKYARD_COUNT_TYPES=1. Elsewhere one line per size, which names the types of that size.
/// Then a line per pool with a name that holds live blocks, which it frees at its end. Allocates nothing. O(slabs), any
/// thread.
BY_API size_t by_block_leak_report(int descriptor);

/// Sets whether that report goes to standard error when the process ends normally. Off at first; BLOCKYARD_LEAKS=1 or 2
/// in the environment switches it on. A forked child never writes it: its parent's blocks are not the child's to free.
BY_API void by_block_leak_report_at_exit(int enabled);

#ifdef __cplusplus
}
#endif
#endif
