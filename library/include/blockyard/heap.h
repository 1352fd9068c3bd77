/// The general heap: malloc's contract, with bounds on the time of its slowest calls. Also the *arena*, a heap of the
/// program's own, and everything a program can set, prepare or ask of the process's heap.
///
/// How it bounds time: a background thread, the *janitor*, populates memory (makes it resident by touching it) before
/// the program needs it, and gives back what nobody uses. An allocation that finds nothing populated is a *ready miss*:
/// the thread populates for itself, and the miss is counted. docs/design/heap.md explains the algorithm and its
/// sources.
///
/// Time: blocks up to 8 KiB take O(1). On the thread that allocated them they take no lock and no atomic
/// read-modify-write, except when the thread needs a new slab, and no call into the operating system while memory is
/// ready. Larger blocks take O(1) under one lock. Not bounded: a ready miss, and the first touch of a block above 1
/// MiB. At the memory limit a call waits about a second at most for what the janitor works on, and merges free memory,
/// before it fails. docs/reference/bounds.md has every bound.
///
/// Memory: rounding wastes 15 bytes up to 128 bytes and at most a quarter above; tables take 1 % of what is in use; the
/// reserve of ready memory comes on top, 4 MiB unless set. On Windows there are no huge pages, memory pressure is not
/// known, and what is given back is committed again at once.
///
/// Unless said otherwise: sizes are in bytes; a block is aligned to 16; the caller owns a block until it frees it, on
/// any thread; and any thread may call any function at any time, but not from a signal handler that interrupted one of
/// them.
#ifndef BLOCKYARD_HEAP_H
#define BLOCKYARD_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "blockyard/detail/visibility.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Allocates at least `size` bytes, contents unspecified. Size 0 gives a unique block; a read or write there ends the
/// program, while at most 65,535 such blocks live and there is address space for them. NULL with errno ENOMEM when
/// memory is exhausted.
BY_API void* by_malloc(size_t size);

/// Frees a block. NULL is a no-op. Keeps errno. Ends the program with a stack on standard error for a pointer outside
/// the heap's memory or inside a block, and for many second frees. Checked builds find every wrong and every second
/// free.
BY_API void by_free(void* block);

/// As by_free, for callers that know the size they asked for. Only checked builds look at `size`.
BY_API void by_free_sized(void* block, size_t size);

/// Allocates `count * size` bytes set to zero. NULL with errno ENOMEM when the product overflows or memory is
/// exhausted. O(bytes) up to 4 MiB; above, pages come fresh from the operating system as they are touched.
BY_API void* by_calloc(size_t count, size_t size);

/// Resizes a block and keeps its contents up to the smaller size. It stays in place while at least half of it is used,
/// else it moves: O(bytes). NULL acts as by_malloc. Size 0 gives a block of size 0; where a
/// small block stays in place, a read or write there is not noticed. On failure NULL with errno ENOMEM, and `block`
/// stays valid.
BY_API void* by_realloc(void* block, size_t size);

/// Allocates `size` bytes at `alignment`, a power of two up to 1 GiB. Size 0 gives a unique block; above an alignment
/// of 16 a read or write there is not noticed. NULL with errno EINVAL for an alignment that is no power of two, ENOMEM
/// for a larger one and when memory is exhausted.
BY_API void* by_aligned_alloc(size_t alignment, size_t size);

/// Bytes of a live block that may be used, at least what was asked for; 0 for NULL. O(1).
BY_API size_t by_usable_size(const void* block);

/// An arena: a heap whose blocks can all be freed at once, for a level, a document or a plug-in. (mimalloc calls it a
/// heap.) One thread at a time allocates from it. Any thread may free its blocks, with by_free, but not during
/// by_arena_destroy.
typedef struct by_arena by_arena;

/// Makes an arena, which the caller owns. O(1). NULL with errno ENOMEM when memory is exhausted or 65,535 heaps exist,
/// those of threads included.
BY_API by_arena* by_arena_create(void);
/// Frees every block of the arena, and the arena. NULL is a no-op. O(slabs and blocks above 8 KiB), not O(blocks).
BY_API void by_arena_destroy(by_arena* arena);
/// Frees a block on the thread that allocates from the arena. O(1), no atomic read-modify-write. by_free is right there
/// too, but counts as a free on another thread: the block waits until a later allocation finds it.
BY_API void by_arena_free(by_arena* arena, void* block);
/// As by_malloc, by_calloc and by_aligned_alloc, from the arena. (by_realloc moves a block out of its arena.)
BY_API void* by_arena_alloc(by_arena* arena, size_t size);
BY_API void* by_arena_calloc(by_arena* arena, size_t count, size_t size);
BY_API void* by_arena_aligned_alloc(by_arena* arena, size_t alignment, size_t size);

/// The heap's settings, default in parentheses. The environment sets them by name, such as BLOCKYARD_HEAP_RESERVE; the
/// heap reads it at its first use.
typedef enum by_heap_setting {
  BY_HEAP_RESERVE,      ///< bytes kept populated ahead of need, up to 64 GiB (4 MiB)
  BY_HEAP_READY_SLABS,  ///< slabs of 16 KiB cut in advance, up to 65536 (64)
  BY_HEAP_PERIOD,       ///< microseconds between the janitor's rounds while it has work, 50 to 1000000 (1000)
  BY_HEAP_PURGE,        ///< milliseconds until free memory goes back to the operating system, up to 1000000 (500)
  BY_HEAP_JANITOR,      ///< 0: no background thread, by_heap_frame_end does its work; set to 1: from now on one (1).
                        ///< In the environment, 0 also forbids the one that gives back what block pools do not need.
  BY_HEAP_HUGE_PAGES    ///< 1: ask for transparent huge pages, 0: for small ones, for memory not yet populated (1).
                        ///< Always small where the system's pages are larger than 4 KiB.
} by_heap_setting;

/// Changes a setting, from the janitor's next round on. 0, or -1 with errno EINVAL for a value out of range, ENOMEM
/// when the heap cannot start. O(1); may call the operating system.
BY_API int by_heap_set(by_heap_setting setting, uint64_t value);
/// The value of a setting; 0 for one that does not exist. O(1).
BY_API uint64_t by_heap_get(by_heap_setting setting);

/// From now on, the janitor keeps at least `bytes` populated ahead of need; call it before a level. 0 returns to the
/// setting. More than the machine's memory changes nothing. O(1); may wake the janitor, or start it.
BY_API void by_heap_reserve(size_t bytes);
/// Populates memory on the calling thread until `bytes` are ready. Calls the operating system; takes 0.1 to 0.5 ms per
/// MiB, and more on a virtual machine whose host has to find the memory first. 0, or -1 with errno ENOMEM: at once when
/// `bytes` exceeds the machine's memory.
BY_API int by_heap_prefault(size_t bytes);
/// Gives free memory back to the operating system now: every free run of 64 KiB or more, ready ones included. Returns
/// the bytes given back.
BY_API size_t by_heap_trim(void);

/// The heap's part in the end of a frame: takes back blocks of the calling thread that other threads freed, and does
/// the janitor's work where there is none (switched off, or the program is small) and no other thread is doing it. It
/// stops after `budget_ns` nanoseconds; it reads the clock between steps of at most 2 MiB. Programs call by_frame_end
/// (frame.h), which calls this.
BY_API void by_heap_frame_end(uint64_t budget_ns);

/// What the heap counted since its start, or holds now.
typedef struct by_heap_statistics {
  uint64_t ready_misses_small;    ///< slabs for which no populated memory was ready
  uint64_t ready_misses_medium;   ///< blocks above 8 KiB and up to 1 MiB, likewise
  uint64_t large_blocks;          ///< blocks above 1 MiB handed out
  uint64_t populated_by_janitor;  ///< bytes
  uint64_t populated_by_program;  ///< bytes, in ready misses
  uint64_t purged;                ///< bytes given back to the operating system
  uint64_t ready;                 ///< bytes free and populated now
  uint64_t committed;             ///< bytes of slabs, blocks and free runs that are populated, may be, or are being so
  uint64_t resident;              ///< bytes of those, and of what waits to be given back, that are in memory now
  uint64_t used;                  ///< bytes of slabs and of blocks above 8 KiB
  uint64_t live;                  ///< bytes of live blocks, rounded up to their size class or to pages
  uint64_t remote_frees_adopted;  ///< blocks that another thread freed and their owner took back
  uint64_t remote_frees_waiting;  ///< blocks that another thread freed and their owner has not taken back yet
  uint64_t heaps;                 ///< heaps made: the most threads and arenas that lived at once
  double fragmentation;           ///< 1 - live / used: the share of used memory that no block uses
} by_heap_statistics;

/// Fills `*statistics`. O(slabs and pages), one system call per 16 MiB. While no other thread allocates or frees:
/// ready + used <= committed, live <= used, and the janitor changes neither used nor live, except by one slab (at most
/// 64 KiB) that it may be making. While others do, the figures are those of slightly different moments.
BY_API void by_heap_get_statistics(by_heap_statistics* statistics);

/// Checks every run of pages, slab and free list, for tests. NULL, or a sentence that says what is broken. O(memory).
/// No other thread may allocate or free meanwhile.
BY_API const char* by_heap_check(void);

#ifdef __cplusplus
}
#endif
#endif
