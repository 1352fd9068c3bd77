// Who allocated the temp job blocks that are too old. Only looked at while leak detection is on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "blockyard/blockyard.h"

namespace blockyard::lifetime {

by_leaks leak_mode();

/// Follows a block from now on; the number of its record, 0 when there is no room for one.
std::uint32_t follow_block(const void* block, std::size_t size, std::uint64_t frame, std::uint32_t thread);
/// It was freed.
void forget_block(std::uint32_t record);

/// Reports every followed block that is too old in `frame` and was not reported yet, oldest first.
void report_old_blocks(std::uint64_t frame);

void lock_leaks_for_fork();
void unlock_leaks_after_fork();
/// What the parent allocated is not the child's to free: it is never reported there.
void forget_leaks_in_child();

}  // namespace blockyard::lifetime
