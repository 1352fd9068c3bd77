/// Frame and phase marks: where a program tells whoever listens that a frame ended or a phase began.
///
/// Without a recorder a mark costs a load and a branch and does nothing. Every function may be called from any thread
/// at any time, allocates nothing, and keeps errno. Under a recorder a mark costs about as much as a recorded malloc
/// (20 ns) and makes no system call, except on a thread's first event or where the recorder is behind.
#ifndef BLOCKYARD_FRAME_H
#define BLOCKYARD_FRAME_H

#include <stdint.h>

#include "blockyard/detail/visibility.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A frame of the calling thread ends here. The first mark switches off those that a recorder finds by itself (buffer
/// swaps), so that no frame is counted twice.
BY_API void by_frame_mark(void);

/// The calling thread's frame of temp memory ends (blockyard.h): its temp blocks are gone. Not a mark: a worker calls
/// it when its job is done. O(1), and O(blocks that did not fit the region).
BY_API void by_thread_end_frame(void);

/// The program's frame ends: ends the calling thread's temp frame, ages temp job by one frame, lets the heap do for
/// `budget_ns` nanoseconds what it put off (by_heap_frame_end), and marks the frame as by_frame_mark() does. To be
/// called once a frame, by the one thread that owns it. Allocates nothing; reports of temp job blocks that are too old
/// are written to standard error here.
BY_API void by_frame_end(uint64_t budget_ns);

/// A named phase of the program begins here ("menu", "level 3"). `name` is UTF-8, copied, at most 4096 bytes kept.
BY_API void by_phase_mark(const char* name);

#ifdef __cplusplus
}
#endif
#endif
