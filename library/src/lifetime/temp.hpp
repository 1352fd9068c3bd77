// What the files of this component have of one another: temp's slow paths, temp job's, whose fast paths are in
// blockyard/temp_job.hpp, and leak detection.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

#include "blockyard/blockyard.h"
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

/// A block's alignment with its header, which must be aligned too.
constexpr std::size_t effective(std::size_t alignment) { return std::max(alignment, alignof(BlockHeader)); }
/// Cuts a block of so many bytes, and `front` before it, from the cursor's newest chunk: its address; 0 when the chunk
/// has no room.
inline std::uintptr_t bump(JobCursor& cursor, std::size_t front, std::size_t bytes, std::size_t alignment) {
  const std::uintptr_t begin = round_up(cursor.next + front, alignment);
  if (begin > cursor.end || bytes > cursor.end - begin) [[unlikely]] {
    return 0;
  }
  cursor.next = begin + bytes;
  cursor.live += 1;
  return begin;
}
/// Writes its header.
inline void* label(std::uintptr_t begin, BlockKind kind, std::uint32_t number) {
  void* const block = reinterpret_cast<void*>(begin);  // NOLINT: it was a pointer
  new (header_of(block)) BlockHeader{kind, number};
  return block;
}

/// A temp block that did not fit its region; `slot` is its index in the thread's table. nullptr when memory is
/// exhausted.
void* allocate_outside(ThreadState* state, std::size_t size, std::size_t alignment, std::uint32_t slot);
/// The same from the thread's newest chunk alone, for blocks that follow one another: nullptr when it has no room, and
/// in a watched process.
inline void* allocate_outside_in_chunk(std::size_t size, std::size_t alignment, std::uint32_t slot) {
  const std::size_t bytes = size + (size == 0);
  const std::uintptr_t begin =
      bytes <= largest_shared ? bump(job_cursor(), header_bytes, bytes, effective(alignment)) : 0;
  return begin == 0 ? nullptr : label(begin, BlockKind::outside, slot);
}
/// Frees a block of temp job, or such a one; its header was checked.
void release_block(void* block);

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
