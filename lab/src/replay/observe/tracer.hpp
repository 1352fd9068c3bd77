// Which system calls an allocator makes, and at which events.
#pragma once

#include <string>

#include "replay/observe/trace_board.hpp"

namespace blockyard::replay {

/// Goes on in a child process whose system calls the calling process writes down (ptrace; no privilege is needed where
/// the system lets a process trace its own child). To be called while there is one thread.
///
/// Returns in the child alone, with the board on which it says what its threads are doing. The calling process stays
/// behind: it hands interrupts on, and when the child has ended well it writes `folder`/syscalls.npy and ends as the
/// child did, by the same status or signal. Throws journal::Error where tracing is not allowed, and when the file can't
/// be written.
///
/// Every system call stops its thread twice, for some microseconds: nothing about a traced run's times can be trusted.
TraceBoard& go_on_traced(const std::string& folder);

}  // namespace blockyard::replay
