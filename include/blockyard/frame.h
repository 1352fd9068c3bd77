/// Frame and phase marks: where a program tells whoever listens that a frame ended or a phase began.
///
/// Without a recorder a mark costs a load and a branch and does nothing. Every function may be called from any thread at
/// any time, allocates nothing, and keeps errno. Under a recorder a mark costs about as much as a recorded malloc
/// (20 ns) and makes no system call, except on a thread's first event or where the recorder is behind.
#ifndef BLOCKYARD_FRAME_H
#define BLOCKYARD_FRAME_H

#include <stdint.h>

#include "blockyard/visibility.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A frame of the calling thread ends here. The first mark switches off those that a recorder finds by itself (buffer
/// swaps), so that no frame is counted twice.
BY_API void by_frame_mark(void);

/// The frame ends: marks it as by_frame_mark() does. To be called by the one thread that owns the program's frame, once
/// a frame. `budget_ns` is how long, in nanoseconds, work that was put off may take now; nothing in this version puts
/// work off, so the call returns at once whatever the budget.
BY_API void by_frame_end(uint64_t budget_ns);

/// A named phase of the program begins here ("menu", "level 3"). `name` is UTF-8, copied, at most 4096 bytes kept.
BY_API void by_phase_mark(const char* name);

#ifdef __cplusplus
}
#endif
#endif
