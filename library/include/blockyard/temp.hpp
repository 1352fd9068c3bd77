/// The temp lifetime's fast path: a bump allocator a thread, inline. Bounds and results on failure: lifetime.h.
#ifndef BLOCKYARD_TEMP_HPP
#define BLOCKYARD_TEMP_HPP

#include <cstddef>
#include <cstdint>

#include "blockyard/lifetime.h"

// GCC's -fsanitize=null takes the flags of the addition that makes a thread-local variable's address; linkers that
// relax its TLS access replace that addition by one that sets no flags, and the check fails at random. Such a variable
// has an address. (The alignment check stands in the same place of the compiler: only without both is there none.)
#if defined(__GNUC__) && !defined(__clang__)
#define BY_THREAD_LOCAL_ACCESS __attribute__((no_sanitize("null", "alignment")))
#else
#define BY_THREAD_LOCAL_ACCESS
#endif

namespace blockyard {

inline constexpr std::size_t max_alignment = BY_LIFETIME_MAX_ALIGNMENT;

namespace lifetime {

/// The calling thread's temp region, and where its next block may begin. Empty before the first block, and for good in a
/// process that is checked or observed: then every call takes the slow path, however the calling code was compiled.
struct TempRegion {
  std::uintptr_t room = 0;  ///< bytes from where the next block may begin to `stop`
  std::uintptr_t stop = 0;  ///< address: the region's end, or one byte behind where a cursor's piece goes up to the end
  std::uintptr_t last = 0;  ///< where the newest block begins; next() when there is none
  /// What block - `last` is at least for the older blocks of the region, a negative number: for no other address, since
  /// as many bytes before the region are nobody's.
  std::uintptr_t older = ~std::uintptr_t{0};
  std::uintptr_t begin = 0;
  std::uintptr_t peak = 0;  ///< the furthest that next() had been when it went back
  std::size_t bytes = 0;    ///< of the region

  [[nodiscard]] std::uintptr_t next() const noexcept { return stop - room; }
};
/// A region is never larger (by_temp_configure), and an address so many bytes on never wraps.
inline constexpr std::size_t most_region_bytes = std::size_t{1} << 30;

constexpr bool is_valid_alignment(std::size_t alignment) {
  return alignment - 1 < max_alignment && (alignment & (alignment - 1)) == 0;
}

// Cold, so that compilers keep what leads to these calls out of the way, and the fast path in one piece.
extern "C" {
extern BY_API constinit thread_local TempRegion by_temp_region __attribute__((tls_model("initial-exec")));
[[gnu::cold]] BY_API void* by_temp_allocate_slow(std::size_t size, std::size_t alignment) noexcept;
[[gnu::cold]] BY_API void by_temp_deallocate_slow(void* block) noexcept;
[[gnu::cold]] BY_API void by_temp_deallocate_sized_slow(void* block, std::size_t size) noexcept;
}

/// `address` rounded up to `alignment`, a power of two.
constexpr std::uintptr_t round_up(std::uintptr_t address, std::size_t alignment) noexcept {
  return (address + (alignment - 1)) & ~(std::uintptr_t{alignment} - 1);
}

/// What a block of `size` bytes, not 0, takes of its region: a multiple of its alignment, so that the next one of the
/// same alignment needs no rounding. Beyond malloc's alignment that would be a waste.
constexpr std::size_t taken_by(std::size_t size, std::size_t alignment) noexcept {
  return alignment <= alignof(std::max_align_t) ? round_up(size, alignment) : size;
}

/// Its negative: added to the room that is left it carries if, and only if, there is as much. That of size 0, and of
/// those that no address space holds, never does.
constexpr std::size_t minus_taken_by(std::size_t size, std::size_t alignment) noexcept {
  return (0 - size) & (alignment <= alignof(std::max_align_t) ? 0 - alignment : ~std::size_t{0});
}

}  // namespace lifetime

/// As by_lifetime_alloc(size, alignment, BY_TEMP): a few instructions while the region has room.
[[nodiscard, gnu::always_inline]] BY_THREAD_LOCAL_ACCESS inline void* temp_allocate(
    std::size_t size, std::size_t alignment = alignof(std::max_align_t)) noexcept {
  lifetime::TempRegion& region = lifetime::by_temp_region;
  std::uintptr_t room = region.room;
  std::uintptr_t begin = region.stop - room;
  const std::size_t minus_taken = lifetime::minus_taken_by(size, alignment);
  bool fits = lifetime::is_valid_alignment(alignment);
  // Each block's place follows from the place of the one before, a chain that bounds how fast they can follow one
  // another: one addition. Behind a branch, which is predicted, rounding is no part of it; what blocks take keeps the
  // branch from being taken where the alignment stays the same.
  if ((begin & (alignment - 1)) != 0) [[unlikely]] {
    const std::uintptr_t padding = (0 - begin) & (alignment - 1);
    std::uintptr_t left = 0;
    fits = fits && padding <= room && __builtin_add_overflow(room - padding, minus_taken, &left);
    if (fits) {
      begin += padding;
      room -= padding;
      asm("" : "+r"(begin), "+r"(room));  // or GCC makes conditional moves of it, and those wait for the rounding
    }
  }
  void* block = nullptr;
  if (fits && __builtin_add_overflow(room, minus_taken, &room)) [[likely]] {
    region.last = begin;
    block = reinterpret_cast<void*>(begin);  // NOLINT: it was a pointer
  } else {
    // Both are in their places already. But since they are stored here too, before the one call that reads them, each
    // allocation's stores are followed by others on every way through the next allocation's code, and of several in a
    // row compilers drop most of them but the last one's. They must not know what is stored here, or they drop this.
    std::uintptr_t room_again = region.stop - begin;
    std::uintptr_t last_again = region.last;
    asm("" : "+r"(room_again), "+r"(last_again));
    region.room = room_again;
    region.last = last_again;
    block = lifetime::by_temp_allocate_slow(size, alignment);
    room = region.room;
  }
  // On both ways, so that compilers know in a register what the next call would load.
  region.room = room;
  return block;
}

namespace lifetime {

/// Takes back what the region gave from `address` on.
[[gnu::always_inline]] inline void take_back_to(TempRegion& region, std::uintptr_t address) noexcept {
  if (region.next() > region.peak) {
    region.peak = region.next();
  }
  region.room = region.stop - address;
  region.last = address;
}

}  // namespace lifetime

/// As by_lifetime_free(block, BY_TEMP).
[[gnu::always_inline]] BY_THREAD_LOCAL_ACCESS inline void temp_deallocate(void* block) noexcept {
  lifetime::TempRegion& region = lifetime::by_temp_region;
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

/// The same for callers that know the size: frees in the reverse order of the allocations take every block back, where
/// sizes are multiples of the alignment, as those of objects are.
BY_THREAD_LOCAL_ACCESS inline void temp_deallocate(void* block, std::size_t size) noexcept {
  lifetime::TempRegion& region = lifetime::by_temp_region;
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  if (address - region.begin < region.bytes) [[likely]] {
    if (address + size + (size == 0) == region.next() || address == region.last) {
      lifetime::take_back_to(region, address);
    }
    return;
  }
  lifetime::by_temp_deallocate_sized_slow(block, size);
}

/// Temp blocks allocated on this thread while it lives go when it ends; scopes nest. When the thread's frame ends
/// inside of it, nothing is left for it to do.
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
