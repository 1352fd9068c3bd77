// The measured loop: one journal thread's events on one allocator.
#pragma once

#include "replay/run/session.hpp"

namespace blockyard::replay {

/// Follows the thread's records from the clock's start to the last. Between an event's two clock reads stands only the
/// call (and the lock, where the allocator needs one). Allocates nothing; its system calls are sleeps. Ends the run
/// when the allocator has no memory.
void drive(Session& session, ReplayThread& thread);

}  // namespace blockyard::replay
