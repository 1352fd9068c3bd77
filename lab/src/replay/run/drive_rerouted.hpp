// The measured loop for a plan with routes.
#pragma once

#include "replay/run/session.hpp"

namespace blockyard::replay {

/// As drive(), but events of routed slots are carried out by the library's own allocators, and temp memory ends where
/// the plan says. A function of its own, so that plans without routes pay nothing.
void drive_rerouted(Session& session, ReplayThread& thread);

}  // namespace blockyard::replay
