// The measured loop: one journal thread's events on one allocator.
#pragma once

#include "replay/run/session.hpp"

namespace blockyard::replay {

/// Follows the thread's records from the clock's start to the last. Nothing but the call lies between an event's two
/// clock reads (and the lock, where the allocator needs one). Allocates nothing; its only system calls are sleeps. Ends
/// the run when the allocator has no memory.
///
/// In a plan with routes the library's own allocators carry out the events of routed slots, and temp memory ends where
/// the plan says. That loop is one of its own: plans without routes pay nothing.
void drive(Session& session, ReplayThread& thread);

}  // namespace blockyard::replay
