// The heap's beginning, and what happens to it around a fork.
#pragma once

namespace blockyard::heap {

/// Readies the region, the tables and the first reserve; the first call does the work, on whatever thread it comes.
/// False when the address space cannot be had.
bool initialise();

}  // namespace blockyard::heap
