// Temp's slow paths, for the other files of this component.
#pragma once

#include "lifetime/thread_state.hpp"

namespace blockyard::lifetime {

/// The address behind the end of a region.
inline std::uintptr_t end_of(const TempRegion& region) { return region.begin + region.bytes; }

/// Makes the next block of a region begin at `address`, at most one byte behind its end. No block is then the newest.
inline void go_on_at(TempRegion& region, std::uintptr_t address) {
  region.stop = address > end_of(region) ? address : end_of(region);
  region.room = region.stop - address;
  region.last = address;
}

/// Ends the calling thread's frame: frees blocks that did not fit, counts the frame, lets the region grow.
void end_temp_frame(ThreadState* state);

/// Gives the calling thread its region, if it has none, and touches what comes next in it and the table of blocks that
/// do not fit.
void prepare_temp(ThreadState* state);

/// Whether the calling thread allocated nothing in this frame.
bool is_frame_empty(ThreadState* state);

/// Has the system provide up to 32 KiB of memory that holds no block yet; none in a watched process, which hides it.
void touch_ahead(std::uintptr_t begin, std::uintptr_t end);

/// A block that does not fit the region of `state`: from temp job, and counted. nullptr with errno ENOMEM.
void* take_outside(ThreadState* state, const TempRegion& region, std::size_t size, std::size_t alignment);

/// Resizes a block where it lies. False: it has to move.
bool resize_temp(void* block, std::size_t old_size, std::size_t size, std::size_t alignment);

}  // namespace blockyard::lifetime
