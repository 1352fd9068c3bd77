/// Allocators named after how long a block lives, for C.
///
///   temp        one frame, one thread. A bump allocator on a region of the thread: no lock, no header.
///   temp job    up to four frames, any thread. A bump allocator on chunks of 64 KiB, 8 bytes of header per block; a
///               chunk is used again when its last block is freed.
///   persistent  until freed, any thread. The heap of heap.h.
///
/// Also the *rewindable* arena: many threads allocate from it, all its blocks end at once.
///
/// Time: a temp block takes O(1), without an atomic operation; the end of a frame is O(1), and O(blocks that did not
/// fit the region). A temp job block takes O(1): with one atomic operation when it is freed outside its thread's four
/// newest chunks. One block in some thousands takes a new chunk: O(1), lock-free while a free chunk exists. Calls into
/// the operating system: when a thread first allocates or is prepared, when its region grows beyond the address space
/// reserved for it, and when more chunks are in use than ever before.
///
/// Memory: a temp region per thread; 8 bytes per temp job block; one live block keeps its chunk, and a thread keeps
/// four. On Windows all of a region, as far as it may grow, counts against the commit limit.
///
/// Sizes are in bytes. Alignments are powers of two up to 16 KiB. Size 0 gives a unique block. Freeing NULL is a no-op.
/// On failure a function returns NULL, with errno EINVAL for another alignment or lifetime, ENOMEM when memory is
/// exhausted or the size is too large. Any thread may call any function at any time, but not from a signal handler that
/// interrupted one of them. docs/design/lifetimes.md explains the algorithms.
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
  BY_TEMP = 0,       ///< until the calling thread's by_thread_end_frame(); for that thread only
  BY_TEMP_JOB = 1,   ///< until freed, by any thread, within four frames of by_frame_end()
  BY_PERSISTENT = 2  ///< until freed, by any thread
} by_lifetime;

/// Prepares the calling thread for its first blocks of these lifetimes, which otherwise take some 30 microseconds: it
/// takes the thread's temp region and temp job chunk, touches 32 KiB of each, and 8 KiB for temp blocks that will not
/// fit. A program's main thread is prepared when the program is loaded; call it where another thread begins. 0, or -1
/// with errno ENOMEM. Calls the operating system.
BY_API int by_lifetime_prepare(void);

/// Allocates `size` bytes, contents unspecified. O(1).
BY_API void* by_lifetime_alloc(size_t size, size_t alignment, by_lifetime lifetime);

/// Frees a block of that lifetime. O(1). Temp: the newest block of the thread is taken back, a block that did not fit
/// the region is freed, any other stays until the end of the frame.
BY_API void by_lifetime_free(void* block, by_lifetime lifetime);

/// Resizes a block and keeps its contents up to the smaller size. `old_size` is what it was allocated with. NULL acts
/// as by_lifetime_alloc. On failure NULL, and `block` stays valid.
///
/// An aligned block stays in place when it does not grow, or when it is the newest temp block and the region has room
/// behind it; else it moves, O(bytes). A persistent block that shrinks to less than half may move, and so may any block
/// in a checked or recorded process. A temp block resized inside a scope belongs to the scope.
BY_API void* by_lifetime_realloc(void* block, size_t old_size, size_t size, size_t alignment, by_lifetime lifetime);

/// A place in the calling thread's temp memory to go back to.
typedef struct by_temp_mark {
  uint64_t frame;   ///< the thread's frame in which it was taken
  size_t position;  ///< bytes into the region
  size_t outside;   ///< blocks of the frame that had not fitted the region by then
} by_temp_mark;

/// The place of the thread's next temp block. O(1).
BY_API by_temp_mark by_temp_mark_now(void);

/// Frees every temp block of the calling thread that is younger than the mark. Does nothing when the frame of the mark
/// has ended. O(1), and O(freed blocks that did not fit the region).
BY_API void by_temp_rewind(by_temp_mark mark);

/// A number for the calling thread's frame that no other frame of any thread has. O(1).
BY_API uint64_t by_temp_frame(void);

/// Sets the size of temp regions: `region` bytes (default 256 KiB), and how far a region may grow when frames need more
/// (default 4 MiB; a limit below `region` means never). It takes effect for threads that start from now on, for the
/// calling one at once if it has no temp block, and for others at the end of their frame. 0, or -1 with errno EINVAL
/// for values above 1 GiB or a region below 64 bytes.
BY_API int by_temp_configure(size_t region, size_t limit);

/// Sets how many frames of by_frame_end() a temp job block may live before it is reported (default 4).
BY_API void by_temp_job_set_frames(uint32_t frames);

/// Gives the memory of free temp job chunks back to the operating system. Returns its bytes. O(free chunks).
BY_API size_t by_temp_job_trim(void);

/// Leak detection of temp job blocks.
typedef enum by_leaks {
  BY_LEAKS_OFF = 0,    ///< the default, unless BLOCKYARD_LEAKS=0|1|2 in the environment says otherwise
  BY_LEAKS_ON = 1,     ///< a block that is too old is reported once, on standard error; it stays valid
  BY_LEAKS_STACKS = 2  ///< with the stack that allocated it
} by_leaks;

/// Switches leak detection. It follows blocks allocated while it is on, up to 4 million, and reports nothing while it
/// is off. While it is on, each temp job block takes a lock; with stacks, also some microseconds.
BY_API void by_leaks_set(by_leaks mode);

/// Blocks reported since the process started.
BY_API uint64_t by_leaks_reported(void);

/// A rewindable arena: blocks of one or many threads that all end at its rewind. (Elsewhere: a region allocator.)
typedef struct by_rewindable by_rewindable;

/// Makes an arena, which the caller owns. Its first piece of memory will have `bytes` (0 means 64 KiB). With a parent,
/// it takes its memory from the parent, which must outlive it. When the parent rewinds, the arena becomes invalid:
/// nothing but by_rewindable_destroy() is left to do with it. NULL with errno ENOMEM. O(1).
BY_API by_rewindable* by_rewindable_create(size_t bytes, by_rewindable* parent);

/// Destroys the arena and gives its memory back. No thread may be using it. NULL is a no-op. O(pieces), calls the
/// operating system.
BY_API void by_rewindable_destroy(by_rewindable* arena);

/// Allocates a block that lives until the arena is rewound. O(1), one atomic addition. A lock and the operating system
/// only when a piece of memory is used up for the first time. NULL with errno EINVAL, ENOMEM, or ESTALE in an invalid
/// arena.
BY_API void* by_rewindable_alloc(by_rewindable* arena, size_t size, size_t alignment);

/// Ends every block of the arena and keeps its memory. O(pieces). No thread may be inside by_rewindable_alloc()
/// meanwhile. With checks, the process ends with a sentence when one is. Without, it stays memory-safe: a block handed
/// out during the rewind lies in the arena's memory, and may overlap blocks handed out after it.
BY_API void by_rewindable_rewind(by_rewindable* arena);

/// 1 unless an arena above this one was rewound since this one was made, else 0. O(depth).
BY_API int by_rewindable_is_valid(const by_rewindable* arena);

typedef struct by_rewindable_statistics {
  size_t used_bytes;       ///< handed out since the last rewind, with padding and the ends of pieces
  size_t peak_used_bytes;  ///< the most of that at any rewind, or now
  size_t held_bytes;       ///< memory of the arena
  size_t pieces;           ///< pieces of memory
  uint64_t rewinds;        ///< so far
} by_rewindable_statistics;

/// Fills `*statistics`. O(pieces), takes a lock.
BY_API void by_rewindable_get_statistics(by_rewindable* arena, by_rewindable_statistics* statistics);

#define BY_PEAK_BUCKETS 16

/// Temp of one thread, or of several together.
typedef struct by_temp_statistics {
  uint64_t frames;  ///< ended frames; a thread's end ends its last frame, if that has a block
  /// Ended frames by peak. [0]: below 1 KiB; [k]: from 2^(k-1) KiB to below 2^k KiB; the last: from 16 MiB on.
  uint64_t frames_by_peak[BY_PEAK_BUCKETS];
  size_t region_bytes;          ///< size of the region now; 0 before the first block or by_lifetime_prepare()
  size_t peak_bytes;            ///< high-water mark of the region, in ended frames
  size_t peak_demand_bytes;     ///< what the most demanding frame would have needed in one region
  uint64_t overflow_full;       ///< blocks that did not fit because the region was full
  uint64_t overflow_too_large;  ///< blocks larger than the whole region
  uint64_t grown;               ///< times the region grew
} by_temp_statistics;

typedef struct by_lifetime_statistics {
  by_temp_statistics temp;      ///< all threads, ended ones included; sizes are the largest of any thread
  uint32_t threads;             ///< live threads that have used temp or temp job
  uint64_t frames;              ///< of by_frame_end()
  size_t temp_job_chunk_bytes;  ///< memory of temp job, in use and free
  size_t temp_job_free_bytes;   ///< of it, without any block
  size_t temp_job_peak_bytes;   ///< most in use at once, counted by the chunk
  uint64_t temp_job_large;      ///< blocks that got their own chunk
  uint64_t leaks_reported;      ///< temp job blocks reported as too old
} by_lifetime_statistics;

/// Fills `*statistics`. O(threads), takes a lock. While other threads allocate, the figures are those of slightly
/// different moments, and of each thread's last ended frame.
BY_API void by_lifetime_get_statistics(by_lifetime_statistics* statistics);

/// Temp of one live thread.
typedef struct by_lifetime_thread_statistics {
  uint32_t thread;  ///< its number, from 1, which no other thread ever has; reports use the same
  by_temp_statistics temp;
} by_lifetime_thread_statistics;

/// Fills up to `room` elements of `threads`, one per live thread, in no order. Returns how many live threads there are,
/// which may be more than `room`. O(threads); allocates nothing.
BY_API size_t by_lifetime_get_thread_statistics(by_lifetime_thread_statistics* threads, size_t room);

/// Writes all of these statistics as text, thread by thread, to the file descriptor. O(threads); allocates nothing.
BY_API void by_lifetime_dump_statistics(int descriptor);

#ifdef __cplusplus
}
#endif
#endif
