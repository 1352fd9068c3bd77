// Which core each thread of a run stays on, for runs in which every repeat does the same work.
#pragma once

#include <span>

namespace blockyard::replay {

struct ReplayThread;

/// Gives each thread one of the cores that the calling thread may use, in turn. The thread with the most records comes
/// first, so that the busiest threads share no core as long as there are enough. Gives none where the kernel does not
/// say which there are. Allocates; call it before the clock runs.
void give_cores(std::span<ReplayThread> threads);

/// Keeps the calling thread, and the threads that it starts from now on, on that core; -1 does nothing. A system call,
/// which also moves the thread.
void stay_on(int core);

/// Lets the calling thread use all cores again that it could use when cores were given; -1 does nothing.
void leave(int core);

}  // namespace blockyard::replay
