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

/// Where the calling thread's next temp block may begin. All null before the first block, and for good in a process
/// that is checked or observed: then every call takes the slow path, however the calling code was compiled.
struct TempCursor {
  std::uintptr_t next;  ///< address
  std::uintptr_t end;   ///< of the region
  std::uintptr_t begin;
  std::uintptr_t last;  ///< where the newest block begins; no_temp_block when there is none
  std::uintptr_t peak;  ///< the furthest that `next` had been when it went back
  std::size_t bytes;    ///< end - begin
};
/// No block begins there, and no caller frees it.
inline constexpr std::uintptr_t no_temp_block = ~std::uintptr_t{0};

constexpr bool is_valid_alignment(std::size_t alignment) {
  return alignment - 1 < max_alignment && (alignment & (alignment - 1)) == 0;
}

extern "C" {
extern BY_API constinit thread_local TempCursor by_temp_cursor __attribute__((tls_model("initial-exec")));
BY_API void* by_temp_allocate_slow(std::size_t size, std::size_t alignment) noexcept;
BY_API void by_temp_deallocate_slow(void* block) noexcept;
BY_API void by_temp_deallocate_sized_slow(void* block, std::size_t size) noexcept;
}

/// `address` rounded up to `alignment`, a power of two.
constexpr std::uintptr_t round_up(std::uintptr_t address, std::size_t alignment) noexcept {
  return (address + (alignment - 1)) & ~(std::uintptr_t{alignment} - 1);
}

}  // namespace lifetime

/// As by_allocate(size, alignment, BY_TEMP): a few instructions while the region has room.
[[nodiscard]] BY_THREAD_LOCAL_ACCESS inline void* temp_allocate(
    std::size_t size, std::size_t alignment = alignof(std::max_align_t)) noexcept {
  lifetime::TempCursor& cursor = lifetime::by_temp_cursor;
  std::uintptr_t begin = cursor.next;
  // Each block's place follows from the place of the one before, a chain that bounds how fast they can follow one
  // another. Behind a branch, which is predicted, rounding is no part of it. Size 0 wraps and takes the slow path.
  if (lifetime::is_valid_alignment(alignment)) [[likely]] {
    if ((begin & (alignment - 1)) == 0 && size - 1 < cursor.end - begin) [[likely]] {
      cursor.last = begin;
      cursor.next = begin + size;
      return reinterpret_cast<void*>(begin);
    }
    begin = lifetime::round_up(begin, alignment);
    if (begin <= cursor.end && size - 1 < cursor.end - begin) [[likely]] {
      cursor.last = begin;
      cursor.next = begin + size;
      return reinterpret_cast<void*>(begin);
    }
  }
  return lifetime::by_temp_allocate_slow(size, alignment);
}

/// As by_deallocate(block, BY_TEMP).
BY_THREAD_LOCAL_ACCESS inline void temp_deallocate(void* block) noexcept {
  lifetime::TempCursor& cursor = lifetime::by_temp_cursor;
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  if (address == cursor.last) {
    if (cursor.next > cursor.peak) {
      cursor.peak = cursor.next;
    }
    cursor.next = address;
    return;
  }
  if (address - cursor.begin < cursor.bytes) [[likely]] {
    return;
  }
  lifetime::by_temp_deallocate_slow(block);
}

/// The same for callers that know the size: frees in the reverse order of the allocations take every block back.
BY_THREAD_LOCAL_ACCESS inline void temp_deallocate(void* block, std::size_t size) noexcept {
  lifetime::TempCursor& cursor = lifetime::by_temp_cursor;
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  if (address - cursor.begin < cursor.bytes) [[likely]] {
    if (address + size + (size == 0) == cursor.next) {
      if (cursor.next > cursor.peak) {
        cursor.peak = cursor.next;
      }
      cursor.next = address;
      cursor.last = address;
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
