// The heap's beginning, and what happens to it around a fork.
#pragma once

namespace blockyard::heap {

/// Whether the heap begins without a reserve, which then grows with what the program takes: under programs that did not
/// choose it, most of which hardly allocate. Set when it is linked.
extern bool begins_small;

/// Readies the region, the tables and the first reserve; the first call does the work, on whatever thread it comes.
/// False when the address space cannot be had.
bool initialise();

}  // namespace blockyard::heap
