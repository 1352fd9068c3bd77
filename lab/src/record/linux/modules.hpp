// What the collector is told of the objects in which the frames of stacks lie.
#pragma once

#include <cstdint>

namespace blockyard::record {

/// Reports the object that contains `address` unless it was reported before. Call it under Busy, on a thread that
/// records.
void announce_module(std::uint64_t address);
/// Reports the objects that are no longer loaded. The same.
void withdraw_modules();
/// A new recording begins: nothing was reported. Call it while no other thread records.
void forget_modules();

}  // namespace blockyard::record
