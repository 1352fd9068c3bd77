// The two commands of blockyard-replay.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace blockyard::replay {

/// Adds `plan` to the command line. When the user asks for it, `chosen` is set to what carries it out.
void add_plan_command(CLI::App& app, std::function<void()>& chosen);
/// Adds `run` in the same way.
void add_run_command(CLI::App& app, std::function<void()>& chosen);

}  // namespace blockyard::replay
