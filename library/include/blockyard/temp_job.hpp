/// The inline fast path of the temp job lifetime: bump allocation from chunks. Bounds and failures: lifetime.h.
///
/// A *chunk* is 64 KiB. Each thread cuts blocks from its newest chunk and counts them in a plain number; frees by other
/// threads go to the chunk's atomic count. The chunk is used again when both say that no block lives. This is a
/// reference count biased towards one thread (Choi, Shull, Torrellas: "Biased reference counting", PACT 2018).
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

/// Bytes of a chunk, and its alignment: masking a block's address finds the chunk.
inline constexpr std::size_t chunk_bytes = std::size_t{64} << 10;
/// Larger blocks get their own chunk, so that a thread that takes a new chunk leaves at most a quarter unused.
inline constexpr std::size_t largest_shared = chunk_bytes / 4;

struct JobCursor;

/// What every chunk begins with.
struct JobChunk {
  /// The cursor of the owner: the thread that counts its own frees without atomic operations. Null without one.
  std::atomic<const JobCursor*> owner{nullptr};
  /// Blocks that the owner allocated less those it freed; only the owner uses it. For its newest chunk, the cursor's
  /// `live` counts instead.
  std::int64_t live = 0;
};

/// Where a thread's next temp job block may begin. Always empty in a checked or observed process: there every call
/// takes the slow path, however its caller was compiled.
struct JobCursor {
  static constexpr std::size_t older_chunks = 3;

  std::uintptr_t next = 0;
  std::uintptr_t end = 0;
  JobChunk* chunk = nullptr;  ///< the newest
  std::int64_t live = 0;      ///< blocks this thread allocated in it less those it freed
  /// Older chunks that this thread still owns, so that frames over a few chunks free without atomic operations, and an
  /// empty one is used again at once.
  JobChunk* older[older_chunks] = {};
  std::size_t oldest = 0;  ///< the element to be replaced next
};

/// What kind of block a header stands before.
enum class BlockKind : std::uint32_t {
  live = 0x7465'6d70,    ///< a temp job block
  followed,              ///< a temp job block that leak detection follows; `number` is its record
  outside,               ///< a temp block that did not fit its region; `number` is its index in the thread's table
  freed,                 ///< freed
  hidden = 0xdddd'dddd,  ///< freed; with checks, which fill headers too
};
/// The 8 bytes before every block.
struct BlockHeader {
  BlockKind kind;
  std::uint32_t number;
};
inline constexpr std::size_t header_bytes = sizeof(BlockHeader);
static_assert(header_bytes == 8);

inline BlockHeader* header_of(void* block) {
  return reinterpret_cast<BlockHeader*>(static_cast<std::byte*>(block) - header_bytes);
}

BY_THREAD_VARIABLE(JobCursor, by_job_cursor, job_cursor)

extern "C" {
/// Whether leak detection is on: then every allocation takes the slow path.
extern BY_API constinit std::atomic<bool> by_jobs_followed;
BY_API void* by_temp_job_allocate_slow(std::size_t size, std::size_t alignment) noexcept;
BY_API void by_temp_job_deallocate_slow(void* block) noexcept;
}

}  // namespace lifetime

/// As by_lifetime_alloc(size, alignment, BY_TEMP_JOB): a few instructions while the block fits the thread's newest
/// chunk.
[[nodiscard, gnu::always_inline]] BY_THREAD_LOCAL_ACCESS inline void* temp_job_allocate(
    std::size_t size, std::size_t alignment = alignof(std::max_align_t)) noexcept {
  using namespace lifetime;
  JobCursor& cursor = job_cursor();
  const std::size_t effective = alignment < alignof(BlockHeader) ? alignof(BlockHeader) : alignment;
  std::uintptr_t begin = cursor.next + header_bytes;
  if (is_valid_alignment(alignment) && size <= largest_shared && !by_jobs_followed.load(std::memory_order_relaxed))
      [[likely]] {
    // As in temp_allocate(), rounding stands behind a branch. With its header, a block takes a multiple of its
    // alignment, so that the branch is rare.
    if ((begin & (effective - 1)) != 0) [[unlikely]] {
      begin = round_up(begin, effective);
      asm("" : "+r"(begin));
    }
    const std::size_t taken =
        effective <= alignof(std::max_align_t) ? round_up(size + header_bytes, effective) - header_bytes : size;
    // Less than the end: a block of size 0 is unique thanks to its header, if it begins inside the chunk.
    if (begin + taken < cursor.end) [[likely]] {
      cursor.next = begin + taken;
      cursor.live += 1;
      void* const block = reinterpret_cast<void*>(begin);  // NOLINT: it was a pointer
      new (header_of(block)) BlockHeader{BlockKind::live, 0};
      return block;
    }
  }
  void* slow = by_temp_job_allocate_slow(size, alignment);
  asm("" : "+r"(slow));  // no tail call: a leak's stack must name the function that allocates
  return slow;
}

/// As by_lifetime_free(block, BY_TEMP_JOB): without an atomic operation if the block's chunk is one of this thread's
/// four newest.
[[gnu::always_inline]] BY_THREAD_LOCAL_ACCESS inline void temp_job_deallocate(void* block) noexcept {
  using namespace lifetime;
  if (block == nullptr) {
    return;
  }
  JobCursor& cursor = job_cursor();
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
