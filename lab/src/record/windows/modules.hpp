// The modules of a Windows process, by the addresses of its stacks.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "journal/event.hpp"
#include "record/channel.hpp"
#include "unwind/rules.hpp"

namespace blockyard::record {

/// What is known of the program when a journal begins.
journal::Header program_header();

/// Not thread-safe.
class Modules {
 public:
  /// Calls `report` with a module record where the frame of a stack_node lies in a module that was not met yet. One
  /// that takes the place of another is noticed by its size, link time or checksum.
  template <class Report>
  void report(const std::uint64_t* stack_node, std::uint64_t stamp, Report&& report) {
    const std::uint64_t payload = payload_of(stack_node[0]);
    if ((payload & root_flag) == 0 && find(unwind::Address{payload}.value(), stamp)) report(record_.data());
  }

 private:
  /// Whether record_ holds one that is new.
  bool find(std::uint64_t address, std::uint64_t stamp);

  std::map<std::uint64_t, std::uint64_t> known_;  ///< begin and a digest of what else is known
  std::vector<std::uint64_t> record_;
};

}  // namespace blockyard::record
