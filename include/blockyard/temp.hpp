/// The temp lifetime's fast path: a bump allocator a thread, inline. Bounds and results on failure: blockyard.h.
#ifndef BLOCKYARD_TEMP_HPP
#define BLOCKYARD_TEMP_HPP

#include <cstddef>
#include <cstdint>

#include "blockyard/blockyard.h"

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

/// The calling thread's temp region, and where its next block may begin. All null before the first block, and for good
/// in a process that is checked or observed: then every call takes the slow path, however the calling code was compiled.
struct TempRegion {
  std::uintptr_t next;  ///< address
  std::uintptr_t end;   ///< of the region
  std::uintptr_t begin;
  std::uintptr_t last;  ///< where the newest block begins; `next` when there is none
  std::uintptr_t peak;  ///< the furthest that `next` had been when it went back
  std::size_t bytes;    ///< end - begin
};
/// A region is never larger (by_temp_configure), and an address so many bytes on never wraps.
inline constexpr std::size_t most_region_bytes = std::size_t{1} << 30;

constexpr bool is_valid_alignment(std::size_t alignment) {
  return alignment - 1 < max_alignment && (alignment & (alignment - 1)) == 0;
}

extern "C" {
extern BY_API constinit thread_local TempRegion by_temp_region __attribute__((tls_model("initial-exec")));
BY_API void* by_temp_allocate_slow(std::size_t size, std::size_t alignment) noexcept;
BY_API void by_temp_deallocate_slow(void* block) noexcept;
BY_API void by_temp_deallocate_sized_slow(void* block, std::size_t size) noexcept;
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

}  // namespace lifetime

/// As by_allocate(size, alignment, BY_TEMP): a few instructions while the region has room.
[[nodiscard]] BY_THREAD_LOCAL_ACCESS inline void* temp_allocate(
    std::size_t size, std::size_t alignment = alignof(std::max_align_t)) noexcept {
  lifetime::TempRegion& region = lifetime::by_temp_region;
  std::uintptr_t begin = region.next;
  // Size 0 wraps and takes the slow path.
  if (lifetime::is_valid_alignment(alignment) && size - 1 < lifetime::most_region_bytes) [[likely]] {
    // Each block's place follows from the place of the one before, a chain that bounds how fast they can follow one
    // another. Behind a branch, which is predicted, rounding is no part of it; what blocks take keeps the branch from
    // being taken where the alignment stays the same.
    if ((begin & (alignment - 1)) != 0) [[unlikely]] {
      begin = lifetime::round_up(begin, alignment);
      asm("" : "+r"(begin));  // or GCC makes a conditional move of it, and that waits for the rounding
    }
    const std::uintptr_t next = begin + lifetime::taken_by(size, alignment);
    if (next <= region.end) [[likely]] {
      region.last = begin;
      region.next = next;
      return reinterpret_cast<void*>(begin);  // NOLINT: it was a pointer
    }
  }
  return lifetime::by_temp_allocate_slow(size, alignment);
}

/// As by_deallocate(block, BY_TEMP).
BY_THREAD_LOCAL_ACCESS inline void temp_deallocate(void* block) noexcept {
  lifetime::TempRegion& region = lifetime::by_temp_region;
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  if (address < region.last && address >= region.begin) [[likely]] {
    return;
  }
  if (address == region.last) {
    if (region.next > region.peak) {
      region.peak = region.next;
    }
    region.next = address;
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
    if (address + size + (size == 0) == region.next || address == region.last) {
      if (region.next > region.peak) {
        region.peak = region.next;
      }
      region.next = address;
      region.last = address;
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
