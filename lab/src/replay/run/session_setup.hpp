// Turns the settings of a run into what its threads share.
#pragma once

#include "replay/plan/plan_format.hpp"
#include "replay/run/run.hpp"
#include "replay/run/run_memory.hpp"
#include "replay/run/session.hpp"
#include "replay/run/timed_call.hpp"

namespace blockyard::replay {

/// Throws journal::Error when the plan can't be replayed at this pace.
void check_pace(const RunSettings& settings, const PlanHeader& plan);

/// Sets everything of the session that depends on settings alone.
void set_up(Session& session, const RunSettings& settings);

/// Sets how causes are found, once the floors are measured.
void set_up_causes(Session& session, const RunSettings& settings, const Floors& floors);

/// Gives each thread the memory that it walks between events, if any.
void set_up_polluters(Session& session, const RunMemory& memory);

}  // namespace blockyard::replay
