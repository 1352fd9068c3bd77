// When an allocator crashes, the process says which allocator and where before it ends.
#pragma once

#include <cstddef>

#include "replay/run/session.hpp"

namespace blockyard::replay {

inline constexpr std::size_t signal_stack_bytes = std::size_t{32} << 10;

/// From here on a fatal signal (SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGTRAP) writes the failed run.json and the
/// sentence "the allocator NAME crashed (SIGSEGV) at event N", then ends the process as that signal does. `session`
/// must outlive it.
void report_crashes_of(const Session& session);

/// Gives the calling thread a stack for that, so that a stack overflow is reported too.
void use_signal_stack(void* begin, std::size_t bytes);

/// Where a replay thread is, for messages: "while the preamble was restored" and so on.
const char* phase_text(Phase phase);

}  // namespace blockyard::replay
