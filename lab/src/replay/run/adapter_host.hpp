// Loads what a run drives.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "blockyard/adapter.h"

namespace blockyard::replay {

/// Counts since the allocator's start, in the adapter's order.
using Counters = std::vector<std::pair<std::string, std::uint64_t>>;

struct LoadedAdapter {
  const by_adapter* adapter = nullptr;                                           ///< lives as long as the process
  std::string path;                                                              ///< the shared object
  std::uint32_t (*read_counters)(by_adapter_counter*, std::uint32_t) = nullptr;  ///< null: it counts nothing
  std::size_t (*usable_size)(void*) = nullptr;                                   ///< null: it does not tell

  /// Initialises the allocator; `setup` needs no `abi` and no room for an error. Returns why it did not start, or "".
  [[nodiscard]] std::string start(by_adapter_setup setup) const;
  /// A sentence for each function that the allocator lacks and its adapter makes of others.
  [[nodiscard]] std::vector<std::string> notes() const;
  /// What the allocator counts of itself; empty where it counts nothing.
  [[nodiscard]] Counters counters() const;
  /// After init(), which may bind them: throws journal::Error when a function of the family is missing.
  void check_functions() const;
};

/// Loads an adapter. Throws journal::Error: not loadable, no adapter, another ABI.
LoadedAdapter load_adapter(const std::string& path);

}  // namespace blockyard::replay
