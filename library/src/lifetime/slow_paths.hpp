// Temp and temp job: what other files of this component call. A temp job block is cut from a chunk, behind a header of
// 8 bytes. The fast paths are in blockyard/temp.hpp and blockyard/temp_job.hpp.
#pragma once

#include <cstdint>

#include "lifetime/thread_state.hpp"

namespace blockyard::lifetime {

// --- temp.cpp ---

/// Ends the calling thread's frame: frees blocks that did not fit, counts the frame, lets the region grow.
void end_temp_frame(ThreadState* state);

/// Whether the calling thread allocated nothing in this frame.
bool is_frame_empty(ThreadState* state);

/// Resizes a block where it lies. False: it has to move.
bool resize_temp(void* block, std::size_t old_size, std::size_t size, std::size_t alignment);

// --- temp_job.cpp ---

/// A temp block that did not fit its region; `slot` is its index in the thread's table. nullptr when memory is
/// exhausted.
void* allocate_outside(ThreadState* state, std::size_t size, std::size_t alignment, std::uint32_t slot);
/// Frees such a block.
void free_outside(void* block);

/// Resizes a block where it lies. False: it has to move.
bool resize_job(void* block, std::size_t old_size, std::size_t size, std::size_t alignment);
/// Drops the padding behind a block of the newest chunk, so that it can grow in place.
void drop_padding(const void* block, std::size_t size);

/// Gives up all chunks that a cursor owns. Its thread calls it.
void retire_job_chunks(JobCursor& cursor);

/// Frames of by_frame_end() so far.
std::uint64_t job_frame();
/// Counts one more and returns the count.
std::uint64_t next_job_frame();
/// Blocks that got their own chunk so far.
std::uint64_t large_jobs();

// --- leaks.cpp: which blocks are too old, and who allocated them. Used only while leak detection is on ---

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
