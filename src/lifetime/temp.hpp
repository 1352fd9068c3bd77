// Temp's slow paths, as the other parts of this room see them.
#pragma once

#include "lifetime/thread_state.hpp"

namespace blockyard::lifetime {

/// Ends the frame of `state`, whose thread is the calling one: frees what did not fit, counts the frame, lets the
/// region grow.
void end_temp_frame(ThreadState* state);

/// A block for which `region`, that of `state`, has no room: from temp job, and counted. nullptr with errno ENOMEM.
void* take_outside(ThreadState* state, const TempRegion& region, std::size_t size, std::size_t alignment);

void* reallocate_temp(void* block, std::size_t old_size, std::size_t size, std::size_t alignment);

}  // namespace blockyard::lifetime
