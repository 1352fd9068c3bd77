// The invariants of every journal's events, checked event by event. Tests, fuzzers and `check` use it.
#pragma once

#include <cstdint>
#include <string>

#include "journal/event.hpp"
#include "journal/flat_map.hpp"
#include "journal/stacks.hpp"

namespace blockyard::journal {

/// Checks what a Writer does not: time never falls; blocks are given densely; only live blocks end, each once; no
/// address is live twice; every thread, name and call stack exists; the preamble consists of allocations. O(1) per
/// event; memory grows with the live blocks. Throws Error whose sentence begins with "event N".
class Walker {
 public:
  void add(const Event& event, const Header& header, const Stacks& stacks);
  std::uint64_t events() const { return events_; }
  std::uint64_t live_blocks() const { return live_.size(); }

 private:
  struct Live {
    std::uint64_t address;
    std::uint64_t event;
  };
  [[noreturn]] void fail(const std::string& what) const;
  void release(std::uint64_t block);
  void give(const Event& event, bool has_addresses);

  std::uint64_t events_ = 0;
  std::uint64_t blocks_ = 0;
  std::uint64_t time_ns_ = 0;
  FlatMap<Live> live_;                ///< block + 1
  FlatMap<std::uint64_t> addresses_;  ///< live address -> block
};

}  // namespace blockyard::journal
