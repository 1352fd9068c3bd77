// The heap's beginning, and what happens to it around a fork.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"

namespace blockyard::heap {

/// Whether the heap begins without a reserve, which then grows with what the program takes: under programs that did not
/// choose it, most of which hardly allocate. Set when it is linked.
extern bool begins_small;

/// Readies the region, the tables and the first reserve; the first call does the work, on whatever thread it comes.
/// False when the address space cannot be had.
bool initialise();

/// Which functions malloc and its kin call (slow_calls.hpp): settled when the heap is ready.
enum class CallMode : std::uint8_t { unready, plain, guarded };
extern constinit base::Atomic<CallMode> call_mode;

}  // namespace blockyard::heap
