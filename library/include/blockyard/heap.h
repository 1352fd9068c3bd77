/// The general heap behind the `persistent` lifetime: malloc's contract, with a bounded tail.
///
/// Bounds. Blocks up to 8 KiB: O(1), no lock, no atomic read-modify-write on the thread that allocated, and no call
/// into the operating system while memory stands ready. Larger blocks: O(1) under one lock, out of runs of whole pages.
/// A background thread, the janitor, keeps a reserve of populated memory and gives back what nobody wants; when it is
/// outrun, the calling thread populates for itself and counts a *ready miss*. That, and the first touch of a block
/// above 1 MiB, is what is not bounded. Memory: rounding wastes at most 25 % above 128 bytes, tables 1 % of what is
/// in use, and the reserve (4 MiB unless set) comes on top. docs/design/heap.md draws it and says where each constant comes
/// from.
///
/// All sizes are bytes. Unless said otherwise a block is aligned to 16 bytes, belongs to the caller until it is passed
/// to by_free, may be freed on any thread, and every function may be called from any thread at any time, except from a
/// signal handler that interrupted one of them.
#ifndef BLOCKYARD_HEAP_H
#define BLOCKYARD_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "blockyard/detail/visibility.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A block of at least `size` bytes, contents unspecified. Size 0 gives a unique block that may be freed.
/// On failure NULL with errno ENOMEM.
BY_API void* by_malloc(size_t size);

/// Gives a block back. NULL is a no-op. Keeps errno. A pointer that the heap never handed out, or the
/// block that was freed just before, is reported on standard error with the stack and ends the program; checked builds
/// (docs/design/heap.md) find every second free.
BY_API void by_free(void* block);

/// by_free for callers that know the size they asked for. The heap does not rely on it.
BY_API void by_free_sized(void* block, size_t size);

/// `count * size` bytes set to zero. NULL with errno ENOMEM when the product overflows or memory is exhausted.
/// O(bytes), unless the pages come fresh from the operating system.
BY_API void* by_calloc(size_t count, size_t size);

/// Resizes as realloc does: the contents up to the smaller size are kept, NULL acts as by_malloc, size 0 gives a block
/// of size 0; on failure NULL with errno ENOMEM and `block` stays valid. Stays in place while at most half the block
/// lies idle.
BY_API void* by_realloc(void* block, size_t size);

/// A block at a power of two `alignment` up to 1 GiB (2 MiB where address space is scarce). NULL with errno EINVAL for
/// an alignment that is no power of two, ENOMEM for a larger one and when exhausted.
BY_API void* by_aligned_alloc(size_t alignment, size_t size);

/// Bytes that may be used in a live block, at least what was asked for; 0 for NULL.
BY_API size_t by_usable_size(const void* block);

/// A heap of one's own, whose blocks can all go at once: for a level, a document, a plug-in. One thread at a time
/// allocates from it (any thread may free its blocks, with by_free, at any time but during by_arena_destroy).
typedef struct by_arena by_arena;

/// NULL with errno ENOMEM when 65,535 heaps, threads included, exist. O(1).
BY_API by_arena* by_arena_create(void);
/// Frees every block of the heap, and the heap. NULL is a no-op. O(slabs and large blocks), not O(blocks).
BY_API void by_arena_destroy(by_arena* heap);
/// by_free for the thread that allocates from `heap`: O(1), no atomic read-modify-write. Its by_free is right as well,
/// but is to the heap a free on another thread: the block waits there until a later allocation finds it.
BY_API void by_arena_free(by_arena* heap, void* block);
/// As by_malloc, by_calloc and by_aligned_alloc, out of `heap`.
BY_API void* by_arena_alloc(by_arena* heap, size_t size);
BY_API void* by_arena_calloc(by_arena* heap, size_t count, size_t size);
BY_API void* by_arena_aligned_alloc(by_arena* heap, size_t alignment, size_t size);

/// What a program may set, here or by environment: BLOCKYARD_HEAP_RESERVE and so on, read at the heap's first use.
typedef enum by_heap_setting {
  BY_HEAP_RESERVE,      ///< bytes kept populated and waiting, up to 64 GiB (4 MiB)
  BY_HEAP_READY_SLABS,  ///< slabs of 16 KiB cut in advance, up to 65536 (64)
  BY_HEAP_PERIOD,       ///< microseconds between the janitor's rounds while there is work, 50 to 1000000 (1000)
  BY_HEAP_PURGE,        ///< milliseconds that memory is free before it is given back, up to 1000000 (500)
  BY_HEAP_JANITOR,      ///< 0: no background thread, by_heap_frame_end does its work (1)
  BY_HEAP_HUGE_PAGES    ///< 1: ask for transparent huge pages, 0: for small ones; what is populated stays (1)
} by_heap_setting;

/// Changes a setting from the janitor's next round on. 0, or -1 with errno EINVAL for a value out of the range above,
/// and ENOMEM when the heap can't be readied. Any thread; O(1). May call the operating system.
BY_API int by_heap_set(by_heap_setting setting, uint64_t value);
/// The value of a setting; 0 for one that does not exist. Any thread; O(1).
BY_API uint64_t by_heap_get(by_heap_setting setting);

/// From now on the janitor keeps at least `bytes` populated and waiting: call it before a level. 0 returns to the
/// setting; more than the machine's memory changes nothing.
BY_API void by_heap_reserve(size_t bytes);
/// Populates on the calling thread until `bytes` stand ready. May call the operating system; 0.1 to 0.5 ms a MiB, 3
/// and more where a virtual machine's host has to find the memory. 0, or -1 with errno ENOMEM, at once where it is more
/// than the machine's memory.
BY_API int by_heap_prefault(size_t bytes);
/// Gives every wholly free 2 MiB back to the operating system, now, the reserve included. Returns bytes.
BY_API size_t by_heap_trim(void);

/// The heap's share of the end of a frame: adopts the calling thread's waiting remote frees and, where the janitor is
/// switched off, does its work; stops after `budget_ns` nanoseconds (it looks at the clock between steps of at most 2
/// MiB). Any thread: where another is at the janitor's work, this one leaves it to that one. Programs call by_frame_end of
/// frame.h, which calls this.
BY_API void by_heap_frame_end(uint64_t budget_ns);

typedef struct by_heap_statistics {
  uint64_t ready_misses_small;    ///< slabs for which no populated memory was waiting
  uint64_t ready_misses_medium;   ///< blocks above 8 KiB up to 1 MiB, likewise
  uint64_t large_blocks;          ///< blocks above 1 MiB handed out since the start
  uint64_t populated_by_janitor;  ///< bytes
  uint64_t populated_by_program;  ///< bytes, at the start and after ready misses
  uint64_t purged;                ///< bytes given back to the operating system
  uint64_t ready;                 ///< bytes free and populated now
  uint64_t committed;             ///< bytes of slabs, blocks and free runs that are or may be populated, or are in work
  uint64_t resident;              ///< bytes of all that, and of what waits to be given back, that are in memory now
  uint64_t used;                  ///< bytes of slabs and of blocks above 8 KiB
  uint64_t live;                  ///< bytes of live blocks, rounded up to their size class or pages
  uint64_t remote_frees_adopted;  ///< blocks that another thread freed and their owner took back
  uint64_t remote_frees_waiting;  ///< blocks that another thread freed and their owner has not yet taken back
  uint64_t heaps;                 ///< heaps made so far: the most threads and own heaps at once
  double fragmentation;           ///< 1 - live / used: room inside slabs that no block uses
} by_heap_statistics;

/// Fills `*statistics`. Any thread; O(slabs + pages), with a system call for each 16 MiB. While no other thread of the
/// program allocates or frees: ready + used <= committed, live <= used, and used and live do not depend on what the janitor
/// does meanwhile, but for one slab (at most 64 KiB) that it may be making and that then counts as used. Other threads may
/// be running: then the figures are those of slightly different moments.
BY_API void by_heap_get_statistics(by_heap_statistics* statistics);

/// The invariant walker: checks every run of pages, slab and free list. NULL, or a sentence that says what is broken.
/// Takes O(memory); no other thread may be allocating or freeing meanwhile.
BY_API const char* by_heap_check(void);

#ifdef __cplusplus
}
#endif
#endif
