#include "replay/results/route_json.hpp"

#include "journal/routes.hpp"

namespace blockyard::replay {
namespace {

// By Refusal.
constexpr const char* reasons[refusals] = {"other_thread", "outlives_frame", "outlives_scope", "does_not_fit",
                                           "split",        "preamble",       "unfinished"};

}  // namespace

journal::Json route_json(const PlanRoute& route) {
  auto refused = journal::Json::object();
  for (std::size_t reason = 0; reason < refusals; ++reason) {
    if (route.refused[reason] != 0) refused[reasons[reason]] = route.refused[reason];
  }
  return {{"group", route.group},
          {"kind", journal::route_names[route.kind]},
          {"bytes", route.bytes},
          {"blocks", route.blocks},
          {"refused", refused},
          {"peak_bytes", route.peak_bytes},
          {"extra_bytes", route.extra_bytes}};
}

}  // namespace blockyard::replay
