// Temp's slow paths, as the other parts of this room see them.
#pragma once

#include "lifetime/thread_state.hpp"

namespace blockyard::lifetime {

/// The address behind `region`.
inline std::uintptr_t end_of(const TempRegion& region) { return region.begin + region.bytes; }

/// The next block of `region` begins at `address`, at most one byte behind its end; none is the newest.
inline void go_on_at(TempRegion& region, std::uintptr_t address) {
  region.stop = address > end_of(region) ? address : end_of(region);
  region.room = region.stop - address;
  region.last = address;
}

/// Ends the frame of `state`, whose thread is the calling one: frees what did not fit, counts the frame, lets the
/// region grow.
void end_temp_frame(ThreadState* state);

/// Whether nothing was allocated in the frame of `state`, whose thread is the calling one.
bool is_frame_empty(ThreadState* state);

/// A block for which `region`, that of `state`, has no room: from temp job, and counted. nullptr with errno ENOMEM.
void* take_outside(ThreadState* state, const TempRegion& region, std::size_t size, std::size_t alignment);

void lock_settings_for_fork();
void unlock_settings_after_fork();

void* reallocate_temp(void* block, std::size_t old_size, std::size_t size, std::size_t alignment);

}  // namespace blockyard::lifetime
