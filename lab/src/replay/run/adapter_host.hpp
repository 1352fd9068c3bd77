// Loads the allocator that a run drives.
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
  std::size_t (*usable_size)(void*) = nullptr;                                   ///< null: it does not say

  /// Initialises the allocator; `setup` needs neither `abi` nor a buffer for an error. Returns why it did not start, or
  /// "".
  [[nodiscard]] std::string start(by_adapter_setup setup) const;
  /// A sentence for each function that the allocator lacks and its adapter emulates.
  [[nodiscard]] std::vector<std::string> notes() const;
  /// The allocator's own counters; empty where it has none.
  [[nodiscard]] Counters counters() const;
  /// Call it after start(), which may set the functions. Throws journal::Error when one of them is missing.
  void check_functions() const;
};

/// Loads an adapter. Throws journal::Error when the file can't be loaded, is no adapter or has another ABI.
LoadedAdapter load_adapter(const std::string& path);

}  // namespace blockyard::replay
