// Which system calls an allocator makes, and at which events.
#pragma once

#include <string>

#include "replay/observe/trace_board.hpp"

namespace blockyard::replay {

/// Continues in a child process whose system calls the calling process records. This uses ptrace and needs no privilege
/// where the system lets a process trace its own child. Call it while there is one thread.
///
/// Returns only in the child, with the board on which the child's threads publish what they are doing. The calling
/// process passes interrupts on. When the child has ended well, it writes `folder`/syscalls.npy and ends as the child
/// did, with the same status or signal. Throws journal::Error where tracing is not allowed, and when the file can't be
/// written.
///
/// Every system call stops its thread twice, for some microseconds each time: a traced run's times mean nothing.
TraceBoard& go_on_traced(const std::string& folder);

}  // namespace blockyard::replay
