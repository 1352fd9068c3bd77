// Temp's slow paths, as the other parts of this room see them.
#pragma once

#include "lifetime/thread_state.hpp"

namespace blockyard::lifetime {

/// Ends the frame of `state`, whose thread is the calling one: frees what did not fit, counts the frame, lets the
/// region grow.
void end_temp_frame(ThreadState* state);

void* reallocate_temp(void* block, std::size_t old_size, std::size_t size, std::size_t alignment);

}  // namespace blockyard::lifetime
