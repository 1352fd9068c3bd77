/// Allocators named after how long a block lives, for C.
///
///   temp        one frame, one thread: bump allocation out of a region of the thread's own. No lock, no header.
///   temp job    a few frames, any thread: bump allocation out of chunks; a chunk is used again when its last block is
///               freed.
///   persistent  for ever: the heap of heap.h.
///
/// Bounds. Temp: O(1), no atomic operation; a frame's end is O(1) and O(blocks that did not fit). Temp job: O(1), one
/// atomic operation where a block is freed outside of its thread's four newest chunks; one chunk of 64 KiB in some
/// thousands of blocks takes the slow path, O(1) and lock-free while free chunks are at hand. The operating system is
/// asked when a thread first allocates, when its temp region grows, and when more chunks are in use than ever before.
/// Memory: a temp region a thread (address space up to its limit, resident as far as it was used); 8 bytes for each
/// temp job block; a chunk stays taken while one block of it lives; a thread keeps its four newest.
///
/// Sizes are bytes; alignments are powers of two up to 16 KiB (BY_LIFETIME_MAX_ALIGNMENT). Size 0 gives a block of its
/// own, which may be freed. On failure NULL, with errno EINVAL for another alignment or lifetime and ENOMEM when memory
/// is exhausted or the size can't be had. Freeing NULL is a no-op. Every function may be called from any thread at any
/// time, not from a signal handler that interrupted one of them. docs/guide/lifetimes.md says more.
#ifndef BLOCKYARD_LIFETIME_H
#define BLOCKYARD_LIFETIME_H

#include <stddef.h>
#include <stdint.h>

#include "blockyard/detail/visibility.h"
#include "blockyard/frame.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BY_LIFETIME_MAX_ALIGNMENT 16384

typedef enum by_lifetime {
  BY_TEMP = 0,       ///< until the calling thread's by_thread_end_frame(); used by that thread only
  BY_TEMP_JOB = 1,   ///< until freed, by any thread, within four frames of by_frame_end()
  BY_PERSISTENT = 2  ///< until freed, by any thread
} by_lifetime;

/// A block of `size` bytes, contents unspecified.
BY_API void* by_lifetime_alloc(size_t size, size_t alignment, by_lifetime lifetime);

/// Gives a block of that lifetime back. Temp: the newest block is taken back, one that did not fit the region is freed,
/// any other stays until the frame's end.
BY_API void by_lifetime_free(void* block, by_lifetime lifetime);

/// A block of `size` bytes with the contents of `block` up to the smaller size; `old_size` is what it was asked with.
/// In place where it has the alignment and is temp's newest block with room behind it, or does not grow (a persistent
/// block that shrinks to less than half may move; so may any in a checked or recorded process). A temp block resized
/// inside of a scope is one of the scope's. NULL for `block` acts as by_lifetime_alloc; on failure NULL and `block` stays
/// valid.
BY_API void* by_lifetime_realloc(void* block, size_t old_size, size_t size, size_t alignment, by_lifetime lifetime);

/// A place in the calling thread's temp memory, to go back to.
typedef struct by_temp_mark {
  uint64_t frame;   ///< the thread's frame in which it was taken
  size_t position;  ///< bytes into the region
  size_t outside;   ///< blocks that did not fit the region by then
} by_temp_mark;

BY_API by_temp_mark by_temp_mark_now(void);

/// Frees every temp block of the calling thread that is younger than the mark. Nothing happens when the frame of the
/// mark has ended.
BY_API void by_temp_rewind(by_temp_mark mark);

/// Which frame of the calling thread this is: different for every frame of every thread.
BY_API uint64_t by_temp_frame(void);

/// The size of a thread's temp region, for threads that start from now on and for others from the end of their frame:
/// `region` bytes (default 256 KiB), and how far it may grow when frames need more (default 4 MiB; a limit below the
/// region means: never). 0, or -1 with errno EINVAL for a region below 64 bytes or above 1 GiB.
BY_API int by_temp_configure(size_t region, size_t limit);

/// How many frames of by_frame_end() a temp job block may live before it is reported (default 4).
BY_API void by_temp_job_set_frames(uint32_t frames);

/// Gives the memory of free temp job chunks back to the operating system. Returns bytes.
BY_API size_t by_temp_job_trim(void);

typedef enum by_leaks {
  BY_LEAKS_OFF = 0,    ///< the default; or as BLOCKYARD_LEAKS=0|1|2 in the environment says
  BY_LEAKS_ON = 1,     ///< a temp job block that is too old is reported, once, on standard error; it stays valid
  BY_LEAKS_STACKS = 2  ///< with the place that allocated it
} by_leaks;

/// Blocks allocated before the mode was switched on are not followed, and nothing is reported while it is off. While it is
/// on, temp job takes a lock (and with stacks some microseconds) for each block.
BY_API void by_leaks_set(by_leaks mode);

/// Reported blocks since the start.
BY_API uint64_t by_leaks_reported(void);

// A program's own arena: many threads allocate, all blocks go at once.

typedef struct by_rewindable by_rewindable;

/// An arena whose first piece of memory has `bytes` (0 means 64 KiB). With a parent, its memory comes from the parent,
/// which must outlive it, and it is invalid from the parent's rewind on: it gives no blocks any more, and
/// by_rewindable_destroy() is all that is left to do. NULL with errno ENOMEM.
BY_API by_rewindable* by_rewindable_create(size_t bytes, by_rewindable* parent);

/// Gives all memory back. No thread may be using the arena. NULL is a no-op.
BY_API void by_rewindable_destroy(by_rewindable* arena);

/// A block that lives until the arena is rewound. O(1), one atomic addition; a lock and the operating system when a
/// piece of memory is used up for the first time. Any thread. NULL with errno ENOMEM, EINVAL, or ESTALE in an arena
/// that is invalid.
BY_API void* by_rewindable_alloc(by_rewindable* arena, size_t size, size_t alignment);

/// Ends every block of the arena and keeps its memory: O(pieces). The rule: no thread is inside
/// by_rewindable_alloc() meanwhile. Checked processes end with a sentence when one is; others stay memory-safe: a
/// block handed out during the rewind lies within the arena's memory, and may overlap blocks handed out after it.
BY_API void by_rewindable_rewind(by_rewindable* arena);

/// Whether no arena above it was rewound since it was made.
BY_API int by_rewindable_is_valid(const by_rewindable* arena);

typedef struct by_rewindable_statistics {
  size_t used_bytes;       ///< handed out since the last rewind, alignment and the ends of pieces included
  size_t peak_used_bytes;  ///< the most of that at any rewind, or now
  size_t held_bytes;       ///< memory of the arena
  size_t pieces;           ///< in how many pieces
  uint64_t rewinds;
} by_rewindable_statistics;

BY_API void by_rewindable_get_statistics(by_rewindable* arena, by_rewindable_statistics* statistics);

// What happened, in the form that users of such allocators know.

#define BY_PEAK_BUCKETS 16

/// Of one thread's temp, or the sum over several.
typedef struct by_temp_statistics {
  uint64_t frames;                           ///< that ended; a thread's end is that of its last, if that has a block
  uint64_t frames_by_peak[BY_PEAK_BUCKETS];  ///< [0]: peak below 1 KiB, [k]: from 2^(k-1) KiB to below 2^k KiB, the
                                             ///< last: from 16 MiB
  size_t region_bytes;                       ///< size of the region now; 0 before the first block
  size_t peak_bytes;                         ///< high-water mark of the region in ended frames
  size_t peak_demand_bytes;                  ///< what the most demanding frame would have needed in one region
  uint64_t overflow_full;                    ///< blocks that the full region had no room for
  uint64_t overflow_too_large;               ///< blocks larger than the whole region
  uint64_t grown;                            ///< how often the region grew
} by_temp_statistics;

typedef struct by_lifetime_statistics {
  by_temp_statistics temp;      ///< all threads, those that have ended included; sizes are the largest of any
  uint32_t threads;             ///< that have used temp or temp job and live
  uint64_t frames;              ///< of by_frame_end()
  size_t temp_job_chunk_bytes;  ///< memory of temp job, in use and free
  size_t temp_job_free_bytes;   ///< of it, without any block
  size_t temp_job_peak_bytes;   ///< most in use at once, to the chunk
  uint64_t temp_job_large;      ///< blocks that got a chunk of their own
  uint64_t leaks_reported;
} by_lifetime_statistics;

/// Gathers, O(threads). Other threads may run: the figures are then those of slightly different moments, and of their
/// last ended frame.
BY_API void by_lifetime_get_statistics(by_lifetime_statistics* statistics);

/// What one living thread counted.
typedef struct by_lifetime_thread_statistics {
  uint32_t thread;  ///< its number, from 1, as in the text and in leak reports; no two threads share one
  by_temp_statistics temp;
} by_lifetime_thread_statistics;

/// Writes what each of the threads counted that by_lifetime_get_statistics() calls living, of up to `room` of them, to `threads`, in no
/// order; returns how many there are. The moments as for by_lifetime_get_statistics(). Allocates nothing.
BY_API size_t by_lifetime_get_thread_statistics(by_lifetime_thread_statistics* threads, size_t room);

/// Writes all of it as text, each thread apart, to `descriptor`. Allocates nothing.
BY_API void by_lifetime_dump_statistics(int descriptor);

#ifdef __cplusplus
}
#endif
#endif
