// `blockyard budget --stop`: limits that are watched while the program runs, so that it stops where one is exceeded.
// The judge (lab/src/budget) counts the journal and is what decides; this is for the debugger.
#pragma once

#include <cstddef>

#include "record/channel.hpp"

namespace blockyard::record {

/// Watches the limits that Python wrote; a single '-' is none. `given` is changed, and must stay.
void watch_limits(char* given);
/// Whether limits are watched. Constant once the library is loaded.
extern bool limits_are_watched __attribute__((visibility("hidden")));

/// An event of the calling thread was recorded: allocate, free or reallocate_end. Raises SIGTRAP on this thread where
/// it is the first to exceed a limit. Call it under Busy. Keeps errno. Cost: a lock, a system call, and the matching.
void watch_event(RecordKind kind, std::size_t size);
void watch_phase(const char* name);
void watch_frame();

/// Whether this process, which has not started a thread yet, is a debugger or a shell around the program, which no
/// limit is meant for.
bool is_around_the_program();

}  // namespace blockyard::record
