// Rewindable arenas: an atomic bump pointer through a list of pieces that only grows.
//
// Only a rewind sets a piece's `used` back, never moving on to the piece. So a thread that slept through a rewind and
// then bumps a piece takes bytes that no other thread gets. A race with a rewind lets blocks of before and after
// overlap, and does nothing worse.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>

#include "base/bits.hpp"
#include "base/kept_errno.hpp"
#include "base/pages.hpp"
#include "blockyard/heap.h"
#include "blockyard/rewindable.hpp"
#include "blockyard/temp.hpp"
#include "checks/report.hpp"
#include "checks/watched.hpp"
#include "lifetime/thread_state.hpp"

namespace {

// A C library without this number has none that says it better.
#ifndef ESTALE
#define ESTALE EINVAL
#endif

using namespace blockyard;

constexpr std::size_t default_bytes = std::size_t{64} << 10;
constexpr std::size_t largest_doubling = std::size_t{16} << 20;
constexpr std::size_t largest = std::size_t{1} << 40;

struct alignas(64) Piece {
  std::atomic<std::size_t> used{0};  // bytes from the piece's begin; more than `bytes` means full
  std::size_t bytes = 0;             // this record included
  Piece* next = nullptr;             // written under rare_lock, read after `current` led here
};

}  // namespace

struct by_rewindable {
  by_rewindable* parent = nullptr;
  std::uint64_t parent_generation = 0;
  std::atomic<std::uint64_t> generation{0};
  std::atomic<Piece*> current{nullptr};
  Piece* first = nullptr;
  std::size_t next_bytes = default_bytes;
  std::atomic<std::size_t> held{0};
  std::atomic<std::size_t> pieces{0};
  std::atomic<std::size_t> peak{0};
  std::atomic<std::uint32_t> inside{0};  // with checks: threads inside allocate
  std::atomic<bool> rewinding{false};    // with checks
};

namespace {

std::byte* begin_of(Piece* piece) { return reinterpret_cast<std::byte*>(piece); }

// A block of the piece, or nullptr when it is full.
void* bump(Piece* piece, std::size_t bytes, std::size_t alignment) {
  // Reserves room for the worst alignment, so that one addition is enough.
  const std::size_t step = bytes + (alignment > 8 ? alignment - 8 : 0);
  const std::size_t rounded = base::align_up(step, std::size_t{8});
  if (rounded > piece->bytes) {
    return nullptr;  // not counted, so that this piece stays usable and `used` never wraps
  }
  const std::size_t offset = piece->used.fetch_add(rounded, std::memory_order_relaxed);
  if (offset > piece->bytes || rounded > piece->bytes - offset) {
    return nullptr;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(begin_of(piece)) + offset;
  return reinterpret_cast<void*>(base::align_up(address, alignment));  // NOLINT: it was a pointer
}

Piece* make_piece(by_rewindable* arena, std::size_t bytes) {
  void* const memory =
      arena->parent != nullptr ? by_rewindable_alloc(arena->parent, bytes, alignof(Piece)) : base::reserve_pages(bytes);
  if (memory == nullptr) {
    return nullptr;
  }
  auto* const piece = new (memory) Piece;
  piece->bytes = bytes;
  piece->used.store(sizeof(Piece), std::memory_order_relaxed);
  checks::hide(piece + 1, bytes - sizeof(Piece));
  arena->held.fetch_add(bytes, std::memory_order_relaxed);
  arena->pieces.fetch_add(1, std::memory_order_relaxed);
  return piece;
}

// Moves on to a piece behind `full` that may hold `need` bytes, or makes one at the list's end. False when memory is
// exhausted. The piece is made outside the lock, since a parent may grow for it and take the lock.
bool advance(by_rewindable* arena, Piece* full, std::size_t need) {
  std::size_t room = base::align_up(need + sizeof(Piece), base::page_size());
  {
    const std::lock_guard guard(lifetime::rare_lock);
    if (arena->current.load(std::memory_order_relaxed) != full) {
      return true;  // another thread has moved on
    }
    if (full != nullptr && full->next != nullptr) {
      arena->current.store(full->next, std::memory_order_release);
      return true;
    }
    room = std::max(room, arena->next_bytes);
  }
  Piece* const piece = make_piece(arena, room);
  if (piece == nullptr) {
    return false;
  }
  const std::lock_guard guard(lifetime::rare_lock);
  arena->next_bytes = std::min(std::max(arena->next_bytes, piece->bytes) * 2, largest_doubling);
  Piece** last = &arena->first;
  while (*last != nullptr) {
    last = &(*last)->next;
  }
  *last = piece;
  if (arena->current.load(std::memory_order_relaxed) == full) {
    arena->current.store(full == nullptr ? arena->first : full->next, std::memory_order_release);
  }
  return true;
}

std::size_t used_bytes(by_rewindable* arena) {
  const std::lock_guard guard(lifetime::rare_lock);
  std::size_t sum = 0;
  for (Piece* piece = arena->first; piece != nullptr; piece = piece->next) {
    sum += std::min(piece->used.load(std::memory_order_relaxed), piece->bytes) - sizeof(Piece);
  }
  return sum;
}

void* allocate_inside(by_rewindable* arena, std::size_t bytes, std::size_t alignment) {
  const std::size_t need = bytes + alignment;
  for (;;) {
    Piece* const piece = arena->current.load(std::memory_order_acquire);
    if (piece != nullptr) {
      if (void* const block = bump(piece, bytes, alignment)) {
        return block;
      }
    }
    if (!advance(arena, piece, need)) {
      return base::failed(ENOMEM);
    }
  }
}

}  // namespace

extern "C" {

by_rewindable* by_rewindable_create(size_t bytes, by_rewindable* parent) {
  void* const memory = by_malloc(sizeof(by_rewindable));
  if (memory == nullptr || bytes > largest) {
    by_free(memory);
    return base::failed(ENOMEM);
  }
  auto* const arena = new (memory) by_rewindable;
  arena->parent = parent;
  if (parent != nullptr) {
    arena->parent_generation = parent->generation.load(std::memory_order_acquire);
  }
  arena->next_bytes =
      base::align_up(bytes == 0 ? default_bytes : std::max(bytes, sizeof(Piece) + 64), base::page_size());
  return arena;
}

void by_rewindable_destroy(by_rewindable* arena) {
  if (arena == nullptr) {
    return;
  }
  // A child's pieces are its parent's memory.
  if (arena->parent == nullptr) {
    for (Piece* piece = arena->first; piece != nullptr;) {
      Piece* const next = piece->next;
      const std::size_t bytes = piece->bytes;
      checks::show(piece, bytes);
      base::release_pages(piece, bytes);
      piece = next;
    }
  }
  arena->~by_rewindable();
  by_free(arena);
}

void* by_rewindable_alloc(by_rewindable* arena, size_t size, size_t alignment) {
  if (!lifetime::is_valid_alignment(alignment)) {
    return base::failed(EINVAL);
  }
  if (size > largest) {
    return base::failed(ENOMEM);
  }
  if (by_rewindable_is_valid(arena) == 0) {
    return base::failed(ESTALE);
  }
  // With checks, the process ends when a rewind and an allocation overlap.
  const bool checked = checks::are_on();
  if (checked) {
    arena->inside.fetch_add(1);
    if (arena->rewinding.load()) {
      checks::report_fault("an arena was allocated from while another thread rewinds it", arena);
    }
  }
  const std::size_t bytes = size + (size == 0);
  void* const block = allocate_inside(arena, bytes, alignment);
  if (block != nullptr) {
    checks::show_fresh(block, bytes);
  }
  if (checked) {
    arena->inside.fetch_sub(1);
  }
  return block;
}

void by_rewindable_rewind(by_rewindable* arena) {
  if (by_rewindable_is_valid(arena) == 0) {
    return;  // its pieces may be other blocks of the parent by now
  }
  if (checks::are_on()) {
    arena->rewinding.store(true);
    if (arena->inside.load() != 0) {
      checks::report_fault("an arena was rewound while another thread allocates from it", arena);
    }
  }
  const std::size_t used = used_bytes(arena);
  arena->peak.store(std::max(arena->peak.load(std::memory_order_relaxed), used), std::memory_order_relaxed);
  arena->generation.fetch_add(1, std::memory_order_acq_rel);
  {
    const std::lock_guard guard(lifetime::rare_lock);
    for (Piece* piece = arena->first; piece != nullptr; piece = piece->next) {
      checks::hide(piece + 1, piece->bytes - sizeof(Piece));
      piece->used.store(sizeof(Piece), std::memory_order_relaxed);
    }
    arena->current.store(arena->first, std::memory_order_release);
  }
  if (checks::are_on()) {
    arena->rewinding.store(false);
  }
}

int by_rewindable_is_valid(const by_rewindable* arena) {
  for (; arena->parent != nullptr; arena = arena->parent) {
    if (arena->parent_generation != arena->parent->generation.load(std::memory_order_acquire)) {
      return 0;
    }
  }
  return 1;
}

void by_rewindable_get_statistics(by_rewindable* arena, by_rewindable_statistics* statistics) {
  const bool valid = by_rewindable_is_valid(arena) != 0;
  const std::size_t used = valid ? used_bytes(arena) : 0;
  *statistics = {used, std::max(arena->peak.load(std::memory_order_relaxed), used),
                 valid ? arena->held.load(std::memory_order_relaxed) : 0,
                 valid ? arena->pieces.load(std::memory_order_relaxed) : 0,
                 arena->generation.load(std::memory_order_relaxed)};
}

}  // extern "C"
