// The two commands of blockyard-replay.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace blockyard::replay {

/// Adds `plan` to the command line; `chosen` is set to what carries it out when the user asked for it.
void add_plan_command(CLI::App& app, std::function<void()>& chosen);
/// Adds `run`, likewise.
void add_run_command(CLI::App& app, std::function<void()>& chosen);

}  // namespace blockyard::replay
