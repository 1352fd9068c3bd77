// Calls `probe` at the leaves of a random tree of calls that is `depth` deep. The same tree compiled without frame
// pointers, with them, and for a processor whose values want aligned stacks.
#pragma once

#include <cstdint>

void call_tree_without_frame_pointers(unsigned depth, std::uint64_t seed, void (*probe)(void*), void* context);
void call_tree_with_frame_pointers(unsigned depth, std::uint64_t seed, void (*probe)(void*), void* context);
