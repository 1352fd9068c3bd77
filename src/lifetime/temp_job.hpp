// Temp job: blocks out of chunks, each with 8 bytes before it.
#pragma once

#include <cstdint>

#include "lifetime/thread_state.hpp"

namespace blockyard::lifetime {

// Everything but the common case; the fast ones stand in temp.hpp of the public headers.
void* by_temp_job_allocate_slow(std::size_t size, std::size_t alignment) noexcept;
void by_temp_job_deallocate_slow(void* block) noexcept;

/// What stands before a block.
enum class BlockKind : std::uint32_t {
  live = 0x7465'6d70,  ///< a temp job block that nobody follows
  followed,            ///< `number` is its leak record
  outside,             ///< a temp block that did not fit its region; `number` is its slot in the thread's table
  freed,
};
struct BlockHeader {
  BlockKind kind;
  std::uint32_t number;
};
inline constexpr std::size_t header_bytes = sizeof(BlockHeader);
static_assert(header_bytes == 8);

inline BlockHeader* header_of(void* block) {
  return reinterpret_cast<BlockHeader*>(static_cast<std::byte*>(block) - header_bytes);
}

/// A block for temp that did not fit, in slot `slot` of its thread's table. nullptr when memory is exhausted.
void* allocate_outside(ThreadState* state, std::size_t size, std::size_t alignment, std::uint32_t slot);
/// Frees one.
void free_outside(void* block);

void* reallocate_job(void* block, std::size_t old_size, std::size_t size, std::size_t alignment);

/// The thread is done with the cursor's chunk.
void retire_job_chunk(JobCursor& cursor);

/// From now on every allocation takes the slow path, where leaks are followed; or no longer.
void follow_jobs(bool follow);

/// Frames of by_frame_end() so far.
std::uint64_t job_frame();
/// Counts one more and returns it.
std::uint64_t next_job_frame();
std::uint64_t large_jobs();

}  // namespace blockyard::lifetime
