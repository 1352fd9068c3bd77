// Temp job: blocks out of chunks, each with 8 bytes before it. The fast paths stand in blockyard/temp_job.hpp.
#pragma once

#include <cstdint>

#include "lifetime/thread_state.hpp"

namespace blockyard::lifetime {

/// A block for temp that did not fit, in slot `slot` of its thread's table. nullptr when memory is exhausted.
void* allocate_outside(ThreadState* state, std::size_t size, std::size_t alignment, std::uint32_t slot);
/// Frees one.
void free_outside(void* block);

void* reallocate_job(void* block, std::size_t old_size, std::size_t size, std::size_t alignment);

/// The thread is done with all of the cursor's chunks.
void retire_job_chunks(JobCursor& cursor);

/// From now on every allocation takes the slow path, where leaks are followed; or no longer.
void follow_jobs(bool follow);

/// Frames of by_frame_end() so far.
std::uint64_t job_frame();
/// Counts one more and returns it.
std::uint64_t next_job_frame();
std::uint64_t large_jobs();

}  // namespace blockyard::lifetime
