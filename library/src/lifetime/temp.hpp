// Temp's slow paths, for the other files of this component.
#pragma once

#include "lifetime/thread_state.hpp"

namespace blockyard::lifetime {

/// Ends the calling thread's frame: frees blocks that did not fit, counts the frame, lets the region grow.
void end_temp_frame(ThreadState* state);

/// Whether the calling thread allocated nothing in this frame.
bool is_frame_empty(ThreadState* state);

/// Resizes a block where it lies. False: it has to move.
bool resize_temp(void* block, std::size_t old_size, std::size_t size, std::size_t alignment);

}  // namespace blockyard::lifetime
