// Loads what a run drives.
#pragma once

#include <string>
#include <vector>

#include "blockyard/adapter.h"

namespace blockyard::replay {

struct LoadedAdapter {
  const by_adapter* adapter = nullptr;  ///< lives as long as the process
  std::string path;                     ///< the shared object

  /// A sentence for each function that the allocator lacks and its adapter makes of others.
  [[nodiscard]] std::vector<std::string> notes() const;
  /// After init(), which may bind them: throws journal::Error when a function of the family is missing.
  void check_functions() const;
};

/// Loads an adapter. Throws journal::Error: not loadable, no adapter, another ABI.
LoadedAdapter load_adapter(const std::string& path);

}  // namespace blockyard::replay
