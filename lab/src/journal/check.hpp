// Verifies a whole journal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "journal/progress.hpp"

namespace blockyard::journal {

struct CheckResult {
  std::uint64_t events = 0;
  std::uint64_t blocks_given = 0;
  std::uint64_t live_at_end = 0;
  std::uint64_t threads = 0;
  std::uint64_t frame_marks = 0;
  std::uint64_t events_with_stack = 0;
  std::uint64_t stacks = 0;  ///< distinct call stacks of events
  bool has_addresses = false;
  std::string allocator;  ///< as in the header
  std::vector<std::string> notes;
};

/// Reads everything: checksums, order, back-references, footer against contents, and the Walker's invariants. Throws
/// Error with the first violation: the event's number and, in a .byj, the byte where its block begins.
CheckResult check(const std::string& path, const Progress& progress);

}  // namespace blockyard::journal
