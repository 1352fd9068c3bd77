/// The inline fast path of the temp lifetime: a bump allocator per thread. Bounds and failures: lifetime.h.
///
/// A thread's *region* holds its temp blocks of one frame. The next block begins `room` bytes before the region's
/// `stop`. One addition to `room` says whether a block fits: it carries if there is room.
#ifndef BLOCKYARD_TEMP_HPP
#define BLOCKYARD_TEMP_HPP

#include "blockyard/detail/cpp20.hpp"

#include <cstddef>
#include <cstdint>

#include "blockyard/lifetime.h"

// GCC's -fsanitize=null reads the flags of the addition that makes a thread-local variable's address. Linkers that
// relax the access replace that addition by one that sets no flags, so the check fails at random. The alignment check
// uses the same code: both must be off.
#if defined(__GNUC__) && !defined(__clang__)
#define BY_THREAD_LOCAL_ACCESS __attribute__((no_sanitize("null", "alignment")))
#else
#define BY_THREAD_LOCAL_ACCESS
#endif

namespace blockyard {

/// Of blocks of all lifetimes, bytes.
inline constexpr std::size_t max_alignment = BY_LIFETIME_MAX_ALIGNMENT;

namespace lifetime {

/// A thread's temp region, and where its next block may begin. Empty before the thread's first block, and always empty
/// in a checked or observed process: there every call takes the slow path, however its caller was compiled.
struct TempRegion {
  std::uintptr_t room = 0;  ///< bytes from where the next block may begin to `stop`
  std::uintptr_t stop = 0;  ///< the region's end, or one byte behind it when a cursor's piece reaches the end
  std::uintptr_t last = 0;  ///< where the newest block begins; next() when there is none
  /// An address is an older block of the region if address - `last` is at least this, as unsigned numbers. No other
  /// address is, since that many bytes of address space before the region stay unused.
  std::uintptr_t older = ~std::uintptr_t{0};
  std::uintptr_t begin = 0;  ///< where the region begins
  std::uintptr_t peak = 0;   ///< the furthest that next() was when it went back
  std::size_t bytes = 0;     ///< of the region

  /// Where the next block may begin, before alignment.
  [[nodiscard]] std::uintptr_t next() const noexcept { return stop - room; }
};
/// Regions are no larger (by_temp_configure), so an address plus as many bytes never wraps.
inline constexpr std::size_t most_region_bytes = std::size_t{1} << 30;

constexpr bool is_valid_alignment(std::size_t alignment) {
  return alignment - 1 < max_alignment && (alignment & (alignment - 1)) == 0;
}

BY_THREAD_VARIABLE(TempRegion, by_temp_region, temp_region)

// Cold, so that compilers move these calls out of the fast path.
extern "C" {
[[gnu::cold]] BY_API void* by_temp_allocate_slow(std::size_t size, std::size_t alignment) noexcept;
[[gnu::cold]] BY_API void by_temp_deallocate_slow(void* block) noexcept;
[[gnu::cold]] BY_API void by_temp_deallocate_sized_slow(void* block, std::size_t size) noexcept;
}

/// `address` rounded up to `alignment`, a power of two.
constexpr std::uintptr_t round_up(std::uintptr_t address, std::size_t alignment) noexcept {
  return (address + (alignment - 1)) & ~(std::uintptr_t{alignment} - 1);
}

/// What a block of `size` bytes, not 0, takes of its region: a multiple of its alignment, so that the next block of the
/// same alignment needs no rounding. Above malloc's alignment that would waste too much.
constexpr std::size_t taken_by(std::size_t size, std::size_t alignment) noexcept {
  return alignment <= alignof(std::max_align_t) ? round_up(size, alignment) : size;
}

/// The negative of that. Added to the room that is left, it carries exactly if the block fits. For size 0, and for
/// sizes that no address space holds, it never carries.
constexpr std::size_t minus_taken_by(std::size_t size, std::size_t alignment) noexcept {
  return (0 - size) & (alignment <= alignof(std::max_align_t) ? 0 - alignment : ~std::size_t{0});
}

}  // namespace lifetime

/// As by_lifetime_alloc(size, alignment, BY_TEMP): a few instructions while the block fits the region.
[[nodiscard, gnu::always_inline]] BY_THREAD_LOCAL_ACCESS inline void* temp_allocate(
    std::size_t size, std::size_t alignment = alignof(std::max_align_t)) noexcept {
  lifetime::TempRegion& region = lifetime::temp_region();
  std::uintptr_t room = region.room;
  std::uintptr_t begin = region.stop - room;
  const std::size_t minus_taken = lifetime::minus_taken_by(size, alignment);
  bool fits = lifetime::is_valid_alignment(alignment);
  // Each block's place depends on the one before: this chain bounds the speed. Rounding stands behind a predicted
  // branch, so that the chain is one addition per block. The branch is rare: blocks take multiples of their alignment.
  if ((begin & (alignment - 1)) != 0) [[unlikely]] {
    const std::uintptr_t padding = (0 - begin) & (alignment - 1);
    std::uintptr_t left = 0;
    fits = fits && padding <= room && __builtin_add_overflow(room - padding, minus_taken, &left);
    if (fits) {
      begin += padding;
      room -= padding;
      asm("" : "+r"(begin), "+r"(room));  // keeps the branch: GCC would make conditional moves, which wait
    }
  }
  void* block = nullptr;
  if (fits && __builtin_add_overflow(room, minus_taken, &room)) [[likely]] {
    region.last = begin;
    block = reinterpret_cast<void*>(begin);  // NOLINT: it was a pointer
  } else {
    // Both values are in memory already. Storing them here too lets compilers drop the stores of all but the last of
    // several allocations in a row: on every path, another store follows before the one call that reads them. The
    // compiler must not know the values, or it drops these stores instead.
    std::uintptr_t room_again = region.stop - begin;
    std::uintptr_t last_again = region.last;
    asm("" : "+r"(room_again), "+r"(last_again));
    region.room = room_again;
    region.last = last_again;
    block = lifetime::by_temp_allocate_slow(size, alignment);
    room = region.room;
  }
  // On both paths, so that the next call finds it in a register.
  region.room = room;
  return block;
}

namespace lifetime {

/// Frees what the region gave from `address` on.
[[gnu::always_inline]] inline void take_back_to(TempRegion& region, std::uintptr_t address) noexcept {
  if (region.next() > region.peak) {
    region.peak = region.next();
  }
  region.room = region.stop - address;
  region.last = address;
}

}  // namespace lifetime

/// As by_lifetime_free(block, BY_TEMP). O(1).
[[gnu::always_inline]] BY_THREAD_LOCAL_ACCESS inline void temp_deallocate(void* block) noexcept {
  lifetime::TempRegion& region = lifetime::temp_region();
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const std::uintptr_t from_last = address - region.last;
  if (from_last >= region.older) [[likely]] {
    return;
  }
  if (from_last == 0) {
    lifetime::take_back_to(region, address);
    return;
  }
  lifetime::by_temp_deallocate_slow(block);
}

/// The same for callers that know the size. Frees in reverse order of the allocations take every block back, if sizes
/// are multiples of their alignment, as the sizes of objects are.
BY_THREAD_LOCAL_ACCESS inline void temp_deallocate(void* block, std::size_t size) noexcept {
  lifetime::TempRegion& region = lifetime::temp_region();
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  if (address - region.begin < region.bytes) [[likely]] {
    if (address + size + (size == 0) == region.next() || address == region.last) {
      lifetime::take_back_to(region, address);
    }
    return;
  }
  lifetime::by_temp_deallocate_sized_slow(block, size);
}

/// Frees, when it ends, the temp blocks that its thread allocated since it began. Scopes nest. If the thread's frame
/// ended meanwhile, it does nothing.
class temp_scope {
 public:
  temp_scope() noexcept : mark_(by_temp_mark_now()) {}
  ~temp_scope() { by_temp_rewind(mark_); }
  temp_scope(const temp_scope&) = delete;
  temp_scope& operator=(const temp_scope&) = delete;

 private:
  by_temp_mark mark_;
};

}  // namespace blockyard

#endif
