// Numbers the stacks of each thread, as the recorder on Linux does while it walks them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "record/channel.hpp"
#include "record/windows/recorder.hpp"
#include "unwind/rules.hpp"

namespace blockyard::record {

class ThreadStacks {
 public:
  /// The number of the stack with these return addresses, innermost first, in this thread. `report(record)` is called
  /// with a stack_node for each part of it that is new. O(addresses).
  template <class Report>
  std::uint32_t number(std::uint32_t thread, std::span<const std::uint64_t> addresses, Report&& report) {
    if (thread >= known_.size()) known_.resize(thread + 1);
    // Some systems end a thread's first stack with a 0.
    const auto end = std::find_if(addresses.begin(), addresses.end(), [](std::uint64_t address) {
      return address == 0 || address >= unwind::address_limit;
    });
    const auto known = static_cast<std::size_t>(end - addresses.begin());
    std::uint32_t parent = 0;
    if (known == Stack::most) {
      parent = node(known_[thread], 0, root_flag | static_cast<std::uint64_t>(unwind::End::depth), report);
    }
    for (std::size_t at = known; at-- > 0;) {
      parent = node(known_[thread], parent, unwind::Address::of_call(addresses[at]).bits, report);
    }
    return parent;
  }

 private:
  struct Key {
    std::uint32_t parent;
    std::uint64_t frame;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      constexpr std::uint64_t mix = 0x9E37'79B9'7F4A'7C15U;
      return static_cast<std::size_t>(((key.frame ^ (std::uint64_t{key.parent} << 32)) * mix) >> 16);
    }
  };
  using Nodes = std::unordered_map<Key, std::uint32_t, Hash>;

  template <class Report>
  static std::uint32_t node(Nodes& nodes, std::uint32_t parent, std::uint64_t frame, Report&& report) {
    const auto [place, is_new] = nodes.try_emplace({parent, frame}, static_cast<std::uint32_t>(nodes.size() + 1));
    if (is_new) {
      const std::uint64_t record[] = {pack(RecordKind::stack_node, frame), 0, pack_pair(place->second, parent)};
      report(record);
    }
    return place->second;
  }

  std::vector<Nodes> known_;
};

}  // namespace blockyard::record
