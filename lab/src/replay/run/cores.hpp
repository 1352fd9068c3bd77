// Which core each thread of a run stays on, where every repeat is to do the same work.
#pragma once

#include <span>

namespace blockyard::replay {

struct ReplayThread;

/// Gives each thread one of the cores that the calling one may use, in turn, the thread with the most records the first:
/// the busiest have cores of their own as long as there are any. Gives none where the kernel doesn't tell which there
/// are. Allocates; before the clock runs.
void give_cores(std::span<ReplayThread> threads);

/// Keeps the calling thread on that core, and the threads that it starts from now on; -1 leaves it where it is. A
/// system call, which also moves the thread.
void stay_on(int core);

/// Lets the calling thread go from that core to wherever it might when cores were given; -1: it was free all along.
void leave(int core);

}  // namespace blockyard::replay
