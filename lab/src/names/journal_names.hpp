// Gives names to the call stacks of a journal and stores them in its file.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "names/resolver.hpp"

namespace blockyard::names {

struct NamingOptions {
  Options resolver;
  std::string perf_map;  ///< names of just-in-time compiled code; empty: /tmp/perf-PID.map, where there is one
};

/// What became of one module's addresses.
struct NamedModule {
  std::string path;
  std::string build_id;
  std::uint64_t frames = 0;
  std::uint64_t named = 0;  ///< frames that have names now, older ones included
  std::uint64_t lines = 0;  ///< of them, those with a line
  Symbols symbols = Symbols::none;
  std::string problem;  ///< as Resolved::problem
};

struct Naming {
  std::uint64_t frames = 0;  ///< without the markers of stacks that are not complete
  std::uint64_t named = 0;
  std::vector<NamedModule> modules;    ///< those with the most frames first
  std::uint64_t generated_frames = 0;  ///< in no module: code that was compiled while the program ran
  std::uint64_t generated_named = 0;
  std::string perf_map;  ///< the map that was read; empty when there was none
  std::string error;     ///< why the journal is as it was: one sentence; empty when it has its names
};

/// Resolves every frame of the journals, each module once, on all processors, and replaces each file by one with the
/// names, in one step: when that fails, the journal is as it was. Names that can't be found here and were there before
/// stay. The events are neither read nor changed. One for each path. Throws journal::Error where no journal can be
/// named.
std::vector<Naming> name_journals(std::span<const std::string> paths, const NamingOptions& options,
                                  const std::function<void(double)>& progress);

/// The same of one. Throws journal::Error for a file that is no .byj, has no footer or has no stacks.
Naming name_journal(const std::string& path, const NamingOptions& options, const std::function<void(double)>& progress);

}  // namespace blockyard::names
