// Temp job: blocks from chunks, each with a header of 8 bytes. The fast paths are in blockyard/temp_job.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>

#include "lifetime/thread_state.hpp"

namespace blockyard::lifetime {

/// A temp block that did not fit its region; `slot` is its index in the thread's table. nullptr when memory is
/// exhausted.
void* allocate_outside(ThreadState* state, std::size_t size, std::size_t alignment, std::uint32_t slot);
/// The same from the thread's newest chunk alone, for blocks that follow one another: nullptr when it has no room, and
/// in a watched process.
inline void* allocate_outside_in_chunk(std::size_t size, std::size_t alignment, std::uint32_t slot) {
  JobCursor& cursor = job_cursor();
  const std::uintptr_t begin = round_up(cursor.next + header_bytes, std::max(alignment, alignof(BlockHeader)));
  const std::size_t bytes = size + (size == 0);
  if (bytes > largest_shared || begin > cursor.end || bytes > cursor.end - begin) {
    return nullptr;
  }
  cursor.next = begin + bytes;
  cursor.live += 1;
  void* const block = reinterpret_cast<void*>(begin);  // NOLINT: it was a pointer
  new (header_of(block)) BlockHeader{BlockKind::outside, slot};
  return block;
}
/// Frees such a block.
void free_outside(void* block);

/// Resizes a block where it lies. False: it has to move.
bool resize_job(void* block, std::size_t old_size, std::size_t size, std::size_t alignment);
/// Drops the padding behind a block of the newest chunk, so that it can grow in place.
void drop_padding(const void* block, std::size_t size);

/// Gives the calling thread its first chunk, if it has none, and touches what comes next in it.
void prepare_job(ThreadState* state);

/// Gives up all chunks that a cursor owns. Its thread calls it.
void retire_job_chunks(JobCursor& cursor);

/// Frames of by_frame_end() so far.
std::uint64_t job_frame();
/// Counts one more and returns the count.
std::uint64_t next_job_frame();
/// Blocks that got their own chunk so far.
std::uint64_t large_jobs();

}  // namespace blockyard::lifetime
