/// The temp job lifetime's fast path: bump allocation out of chunks, inline. Bounds and results on failure:
/// lifetime.h.
#ifndef BLOCKYARD_TEMP_JOB_HPP
#define BLOCKYARD_TEMP_JOB_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "blockyard/lifetime.h"
#include "blockyard/temp.hpp"

namespace blockyard {
namespace lifetime {

/// A chunk is aligned to its size, so that masking a block's address finds it.
inline constexpr std::size_t chunk_bytes = std::size_t{64} << 10;
/// Larger blocks get a chunk of their own: a quarter of one is the most that moving on to the next leaves unused.
inline constexpr std::size_t largest_shared = chunk_bytes / 4;

struct JobCursor;

/// What every chunk begins with.
struct JobChunk {
  /// The cursor of the thread that counts its own blocks without atomic operations; null in a chunk that nobody
  /// allocates from.
  std::atomic<const JobCursor*> owner{nullptr};
  /// The owner's alone: allocated less freed by it. While the chunk is its newest, the cursor's `live` stands in its
  /// place.
  std::int64_t live = 0;
};

/// Where the calling thread's next temp job block may begin. Null for good in a process that is checked or observed:
/// then every call takes the slow path, however the calling code was compiled.
struct JobCursor {
  static constexpr std::size_t older_chunks = 3;

  std::uintptr_t next = 0;
  std::uintptr_t end = 0;
  JobChunk* chunk = nullptr;  ///< the newest
  std::int64_t live = 0;      ///< allocated in it less freed by this thread
  /// Chunks before it that this thread still owns: frames that straddle a few chunks free without atomic operations,
  /// and an empty one is used again without a detour.
  JobChunk* older[older_chunks] = {};
  std::size_t oldest = 0;  ///< the slot to be used next
};

/// What stands before a block.
enum class BlockKind : std::uint32_t {
  live = 0x7465'6d70,  ///< a temp job block that nobody follows
  followed,            ///< `number` is its leak record
  outside,             ///< a temp block that did not fit its region; `number` is its slot in the thread's table
  freed,
  hidden = 0xdddd'dddd,  ///< freed in a checked process, which fills headers, too
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

extern "C" {
extern BY_API constinit thread_local JobCursor by_job_cursor __attribute__((tls_model("initial-exec")));
/// Leaks are followed: every allocation takes the slow path.
extern BY_API constinit std::atomic<bool> by_jobs_followed;
BY_API void* by_temp_job_allocate_slow(std::size_t size, std::size_t alignment) noexcept;
BY_API void by_temp_job_deallocate_slow(void* block) noexcept;
}

}  // namespace lifetime

/// As by_lifetime_alloc(size, alignment, BY_TEMP_JOB): a few instructions while the thread's newest chunk has room.
[[nodiscard, gnu::always_inline]] BY_THREAD_LOCAL_ACCESS inline void* temp_job_allocate(
    std::size_t size, std::size_t alignment = alignof(std::max_align_t)) noexcept {
  using namespace lifetime;
  JobCursor& cursor = by_job_cursor;
  const std::size_t effective = alignment < alignof(BlockHeader) ? alignof(BlockHeader) : alignment;
  std::uintptr_t begin = cursor.next + header_bytes;
  if (is_valid_alignment(alignment) && size <= largest_shared && !by_jobs_followed.load(std::memory_order_relaxed))
      [[likely]] {
    // As in temp_allocate(): rounding behind a branch is no part of the chain from block to block. With its header a
    // block takes a multiple of its alignment, so that the branch is not taken while the alignment stays the same.
    if ((begin & (effective - 1)) != 0) [[unlikely]] {
      begin = round_up(begin, effective);
      asm("" : "+r"(begin));
    }
    const std::size_t taken =
        effective <= alignof(std::max_align_t) ? round_up(size + header_bytes, effective) - header_bytes : size;
    // Less than the end: the header makes a block of no bytes one of its own, if only it begins within the chunk.
    if (begin + taken < cursor.end) [[likely]] {
      cursor.next = begin + taken;
      cursor.live += 1;
      void* const block = reinterpret_cast<void*>(begin);  // NOLINT: it was a pointer
      new (header_of(block)) BlockHeader{BlockKind::live, 0};
      return block;
    }
  }
  void* slow = by_temp_job_allocate_slow(size, alignment);
  asm("" : "+r"(slow));  // no jump in place of a call: a leak's stack names the function that allocates as its last act
  return slow;
}

/// As by_lifetime_free(block, BY_TEMP_JOB): without an atomic operation where this thread allocated the block and its
/// chunk is one of its newest.
[[gnu::always_inline]] BY_THREAD_LOCAL_ACCESS inline void temp_job_deallocate(void* block) noexcept {
  using namespace lifetime;
  if (block == nullptr) {
    return;
  }
  JobCursor& cursor = by_job_cursor;
  BlockHeader* const header = header_of(block);
  auto* const chunk = reinterpret_cast<JobChunk*>(reinterpret_cast<std::uintptr_t>(block) & ~(chunk_bytes - 1));
  if (header->kind == BlockKind::live) [[likely]] {
    if (chunk == cursor.chunk) {
      header->kind = BlockKind::freed;
      cursor.live -= 1;
      return;
    }
    if (chunk->owner.load(std::memory_order_relaxed) == &cursor) {
      header->kind = BlockKind::freed;
      chunk->live -= 1;
      return;
    }
  }
  by_temp_job_deallocate_slow(block);
}

}  // namespace blockyard

#endif
