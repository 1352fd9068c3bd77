// `record --verify-stacks`: walks every stack a second time with libunwind and counts differences.
#pragma once

#include "record/channel.hpp"
#include "unwind/walker.hpp"

namespace blockyard::record {

/// Loads libunwind; false when it can't be loaded. Not within an allocation function.
bool load_verifier();
/// Walks from here with libunwind, compares what lies above `start` with the walker's last stack, and counts in
/// `control`. Prints the first differences. Slow: microseconds a frame, with system calls. Call it under Busy.
void verify_stack(const unwind::Start& start, const unwind::Walker& walker, Control& control);
/// Whether load_verifier() succeeded.
bool verifier_is_loaded();

}  // namespace blockyard::record
