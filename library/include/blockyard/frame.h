/// Marks of frames and phases: how a program says that a frame ended or a phase began.
///
/// The marks go to a recorder, if one is loaded; without one, a mark is a load and a branch. Under a recorder it costs
/// as much as a recorded malloc (about 20 ns), and makes no system call except on a thread's first event or where the
/// recorder cannot keep up. Every function may be called from any thread, allocates nothing and keeps errno.
#ifndef BLOCKYARD_FRAME_H
#define BLOCKYARD_FRAME_H

#include <stdint.h>

#include "blockyard/detail/visibility.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Marks the end of a frame of the calling thread. The first mark switches off the marks that a recorder makes by
/// itself at buffer swaps, so that no frame counts twice.
BY_API void by_frame_mark(void);

/// Ends the calling thread's frame of temp memory (lifetime.h): its temp blocks are gone. A worker thread calls it when
/// its job is done. It is no mark. O(1), and O(blocks that did not fit the thread's region). May call the operating
/// system after by_temp_configure().
BY_API void by_thread_end_frame(void);

/// Ends the program's frame. Call it once per frame, on the thread that owns the frame. In this order, it
/// 1. ends the calling thread's frame of temp memory (by_thread_end_frame),
/// 2. ages temp job blocks by one frame, and reports those that are too old on standard error while leak detection is
///    on,
/// 3. lets the heap do deferred work for up to `budget_ns` nanoseconds (by_heap_frame_end),
/// 4. marks the frame (by_frame_mark).
BY_API void by_frame_end(uint64_t budget_ns);

/// Marks the begin of a phase of the program, such as "menu" or "level 3". `name` is UTF-8 and is copied, up to 4,096
/// bytes of it.
BY_API void by_phase_mark(const char* name);

#ifdef __cplusplus
}
#endif
#endif
