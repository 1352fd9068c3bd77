// Temp job: bump allocation from the calling thread's newest chunk. A chunk goes back with its last block.
#include "lifetime/temp.hpp"

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/bits.hpp"
#include "checks/report.hpp"
#include "checks/watched.hpp"

namespace blockyard::lifetime {
namespace {

constexpr std::size_t largest = std::size_t{1} << 29;
// In a watched process, the block's size stands before its header.
constexpr std::size_t watched_front = header_bytes + sizeof(std::size_t);

constinit std::atomic<std::uint64_t> frames{0};
constinit std::atomic<std::uint64_t> large{0};

std::uintptr_t start_of(Chunk* chunk) { return reinterpret_cast<std::uintptr_t>(chunk + 1); }

// Makes the chunk the cursor's newest.
void set_chunk(JobCursor& cursor, Chunk* chunk) {
  const auto begin = reinterpret_cast<std::uintptr_t>(chunk);
  chunk->owner.store(&cursor, std::memory_order_relaxed);
  cursor.next = begin + sizeof(Chunk);
  cursor.end = begin + chunk_bytes;
  cursor.chunk = chunk;
  cursor.live = 0;
}

void reuse(JobCursor& cursor, Chunk* chunk) {
  checks::check_untouched(chunk + 1, chunk_bytes - sizeof(Chunk));
  chunk->count.reset();
  set_chunk(cursor, chunk);
  checks::hide(chunk + 1, chunk_bytes - sizeof(Chunk));
}

// Every JobChunk is a Chunk, since only take_chunk() makes them.
Chunk* whole(JobChunk* chunk) { return static_cast<Chunk*>(chunk); }

void retire(Chunk* chunk) {
  const std::int64_t live = chunk->live;
  chunk->owner.store(nullptr, std::memory_order_relaxed);
  if (chunk->count.retire(live)) {
    give_chunk(chunk);
  }
}

// The newest chunk is full. Takes the first of these: the same chunk or an older one of the thread, if all its blocks
// are freed; a new chunk, for which the thread gives up its oldest.
bool refill(JobCursor& cursor) {
  Chunk* const full = whole(cursor.chunk);
  if (full != nullptr) {
    if (full->count.is_empty(cursor.live)) {
      reuse(cursor, full);
      return true;
    }
    full->live = cursor.live;
    for (JobChunk*& slot : cursor.older) {
      Chunk* const older = whole(slot);
      if (older != nullptr && older->count.is_empty(older->live)) {
        slot = full;
        reuse(cursor, older);
        return true;
      }
    }
  }
  Chunk* const fresh = take_chunk(0);
  if (fresh == nullptr) {
    return false;
  }
  if (full != nullptr) {
    JobChunk*& slot = cursor.older[cursor.oldest];
    cursor.oldest = (cursor.oldest + 1) % JobCursor::older_chunks;
    if (slot != nullptr) {
      retire(whole(slot));
    }
    slot = full;
  }
  set_chunk(cursor, fresh);
  return true;
}

std::uintptr_t take_large(std::size_t front, std::size_t bytes, std::size_t alignment) {
  if (bytes > largest) {
    return 0;
  }
  const std::size_t need = sizeof(Chunk) + front + alignment + bytes;
  Chunk* const chunk = take_chunk(static_cast<unsigned>(std::bit_width((need - 1) / chunk_bytes)));
  if (chunk == nullptr) {
    return 0;
  }
  chunk->count.retire(1);
  large.fetch_add(1, std::memory_order_relaxed);
  return base::align_up(start_of(chunk) + front, alignment);
}

JobCursor& cursor_of(ThreadState* state) { return checks::is_watched() ? state->watched_job : job_cursor(); }

// The address of a block without its header; 0 with errno ENOMEM on failure.
std::uintptr_t take(JobCursor& cursor, std::size_t size, std::size_t alignment) {
  const std::size_t front = checks::is_watched() ? watched_front : header_bytes;
  const std::size_t bytes = size + (size == 0);
  const std::size_t aligned = effective(alignment);
  std::uintptr_t begin = 0;
  if (bytes > largest_shared || thread_has_left()) {
    begin = take_large(front, bytes, aligned);  // a chunk of its own, of which no thread knows
  } else {
    begin = bump(cursor, front, bytes, aligned);
    if (begin == 0 && refill(cursor)) {
      begin = bump(cursor, front, bytes, aligned);
    }
  }
  if (begin == 0) {
    errno = ENOMEM;
    return 0;
  }
  if (checks::is_watched()) {
    auto* const whole = reinterpret_cast<std::byte*>(begin - front);
    checks::check_untouched(whole, front + bytes);
    checks::show_fresh(whole, front + bytes);
    std::memcpy(whole, &bytes, sizeof bytes);  // at any alignment
    checks::announce_allocated(whole + front, size, alignment);
  }
  return begin;
}

void release(JobCursor& cursor, void* block) {
  Chunk* const chunk = chunk_of(block);
  if (chunk == cursor.chunk) {
    cursor.live -= 1;
  } else if (chunk->owner.load(std::memory_order_relaxed) == &cursor) {
    chunk->live -= 1;
  } else if (chunk->count.free_one()) {
    give_chunk(chunk);
  }
}

std::size_t watched_size(void* block) {
  std::size_t bytes;
  std::memcpy(&bytes, static_cast<std::byte*>(block) - watched_front, sizeof bytes);
  const Chunk* const chunk = chunk_of(block);
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(chunk) + (chunk_bytes << chunk->order);
  if (bytes > end - reinterpret_cast<std::uintptr_t>(block)) {
    checks::report_fault("overrun (the bytes before a temp job block were overwritten)", block);
  }
  return bytes;
}

}  // namespace

constinit std::atomic<bool> by_jobs_followed{false};

// The uncommon cases of a free, after its header was checked.
void release_block(void* block) {
  header_of(block)->kind = BlockKind::freed;
  if (!checks::is_watched()) {
    release(job_cursor(), block);
    return;
  }
  checks::announce_freed(block);
  // Hides its header too, so that the chunk is as hide() left it when it is used again.
  const std::size_t front = checks::fill_hidden() ? watched_front : 0;
  checks::hide(static_cast<std::byte*>(block) - front, front + watched_size(block));
  JobCursor none;
  release(this_thread != nullptr ? this_thread->watched_job : none, block);
}

void* by_temp_job_allocate_slow(std::size_t size, std::size_t alignment) noexcept {
  ThreadState* const state = ensure_thread(alignment);
  if (state == nullptr) {
    return nullptr;
  }
  const bool follow = leak_mode() != BY_LEAKS_OFF;
  const std::uintptr_t begin = take(cursor_of(state), size, alignment);
  if (begin == 0) {
    return nullptr;
  }
  if (!follow && !checks::is_watched()) {
    return label(begin, BlockKind::live, 0);
  }
  const std::uint32_t record =
      follow ? follow_block(reinterpret_cast<void*>(begin), size, job_frame(), state->number) : 0;
  return label(begin, BlockKind::followed, record);
}

void by_temp_job_deallocate_slow(void* block) noexcept {
  const BlockHeader* const header = header_of(block);
  if (header->kind == BlockKind::followed) {
    if (header->number != 0) {
      forget_block(header->number);
    }
  } else if (header->kind != BlockKind::live) {
    checks::report_fault(header->kind == BlockKind::freed || header->kind == BlockKind::hidden
                             ? "double free of a temp job block"
                             : "deallocate of no temp job block",
                         block);
  }
  release_block(block);
}

void* allocate_outside(ThreadState* state, std::size_t size, std::size_t alignment, std::uint32_t slot) {
  const std::uintptr_t begin = take(cursor_of(state), size, alignment);
  return begin == 0 ? nullptr : label(begin, BlockKind::outside, slot);
}

bool resize_job(void* block, std::size_t old_size, std::size_t size, std::size_t alignment) {
  const std::size_t old_bytes = old_size + (old_size == 0);
  const std::size_t bytes = size + (size == 0);
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  if (address % alignment == 0 && header_of(block)->kind == BlockKind::live) {
    if (address + old_bytes == job_cursor().next && bytes <= largest_shared && bytes <= job_cursor().end - address) {
      job_cursor().next = address + bytes;
      return true;
    }
    return size <= old_size;  // not `bytes`: a block of size 0 may have no byte
  }
  return false;
}

void drop_padding(const void* block, std::size_t size) {
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(block) + size + (size == 0);
  if (job_cursor().next - end < alignof(std::max_align_t)) {
    job_cursor().next = end;
  }
}

void prepare_job(ThreadState* state) {
  JobCursor& cursor = cursor_of(state);
  // Where every call takes the slow path, nothing is gained.
  const bool wanted = !checks::is_watched() && !thread_has_left() && leak_mode() == BY_LEAKS_OFF;
  if (wanted && (cursor.chunk != nullptr || refill(cursor))) {
    touch_ahead(cursor.next, cursor.end);
  }
}

void retire_job_chunks(JobCursor& cursor) {
  if (cursor.chunk != nullptr) {
    cursor.chunk->live = cursor.live;
    retire(whole(cursor.chunk));
  }
  for (JobChunk* const older : cursor.older) {
    if (older != nullptr) {
      retire(whole(older));
    }
  }
  cursor = {};
}

std::uint64_t job_frame() { return frames.load(std::memory_order_relaxed); }
std::uint64_t next_job_frame() { return frames.fetch_add(1, std::memory_order_relaxed) + 1; }
std::uint64_t large_jobs() { return large.load(std::memory_order_relaxed); }

}  // namespace blockyard::lifetime

extern "C" size_t by_temp_job_trim(void) { return blockyard::lifetime::discard_free_chunks(); }
