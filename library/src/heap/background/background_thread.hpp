// The heap's background thread. It runs rounds of maintenance (maintenance.hpp): it populates memory before it is
// needed and gives back what nobody needs any more.
//
// It starts by memory, not by the program's threads: where what stands ready runs low, which is nothing in a small
// program, or where memory was freed in one that is not small. The C library does not know it
// (base/background_thread.hpp). Where the number of threads matters all the same, as for a fork, or what a thread may
// do, it ends for a while. While it is not there, the program's threads give memory back themselves, a chunk at a time.
#pragma once

#include "heap/pages/wakeup.hpp"

namespace blockyard::heap {

/// Called on the slow path of an allocation or a free, without a lock: starts the background thread where that is due,
/// else gives memory back in its place, a chunk at most each tick. True when it was tried to start it.
bool do_background_work();
inline bool tend_background_thread() { return !background.is_running() && do_background_work(); }

/// From here on it may be started. Once a process.
void allow_background_thread();

}  // namespace blockyard::heap
