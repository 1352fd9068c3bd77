// A route in JSON: what the plan has of it.
#pragma once

#include "journal/json_text.hpp"
#include "replay/plan/plan_format.hpp"

namespace blockyard::replay {

/// `group`, `kind`, `bytes`, `blocks`, `refused` by reason, `peak_bytes`, `extra_bytes`.
journal::Json route_json(const PlanRoute& route);

}  // namespace blockyard::replay
