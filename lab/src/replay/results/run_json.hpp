// Composes run.json, in the layout of docs/reference/campaign-folder.md.
#pragma once

#include <string>

#include "replay/plan/plan_file.hpp"
#include "replay/results/totals.hpp"
#include "replay/run/adapter_host.hpp"
#include "replay/run/run.hpp"

namespace blockyard::replay {

/// `adapter` is null until one is loaded.
struct RunFacts {
  const RunSettings& settings;
  const PlanFile& plan;
  const LoadedAdapter* adapter = nullptr;
  bool locked = false;
  std::string started_at;
};

std::string finished_run_json(const RunFacts& facts, const Totals& totals);

/// The same for a failed run, in two parts: the characters of the reason go between them.
struct FailedRunJson {
  std::string before;
  std::string after;
};
FailedRunJson failed_run_json(const RunFacts& facts);

}  // namespace blockyard::replay
