// Leak detection of temp job: which blocks are too old, and who allocated them. Used only while it is on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "blockyard/blockyard.h"

namespace blockyard::lifetime {

by_leaks leak_mode();

/// Follows a block from now on. The number of its record; 0 when there is no room for one. `frame` is the program's.
std::uint32_t follow_block(const void* block, std::size_t size, std::uint64_t frame, std::uint32_t thread);
/// The block was freed.
void forget_block(std::uint32_t record);

/// Reports every followed block that is too old in `frame`, once, oldest first.
void report_old_blocks(std::uint64_t frame);

/// The child never reports its parent's blocks, since they are not the child's to free.
void forget_leaks_in_child();

}  // namespace blockyard::lifetime
