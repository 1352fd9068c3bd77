// The hooks of the C allocation functions.
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <unistd.h>

#include "blockyard/detail/visibility.h"
#include "record/linux/hooks.hpp"
#include "record/linux/real.hpp"

namespace blockyard::record {
namespace {

std::size_t system_page_bytes() {
  static std::size_t bytes = 0;
  if (bytes == 0) bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace
}  // namespace blockyard::record

using namespace blockyard::record;

extern "C" {

BY_API void* malloc(std::size_t size) noexcept {
  return allocate(RecordKind::allocate, size, 0, BLOCKYARD_FRAME, [=] { return real.malloc(size); });
}

BY_API void free(void* block) noexcept { release(block, BLOCKYARD_FRAME); }

BY_API void* calloc(std::size_t count, std::size_t size) noexcept {
  return allocate(RecordKind::allocate_zeroed, count * size, 0, BLOCKYARD_FRAME,
                  [=] { return real.calloc(count, size); });
}

BY_API void* realloc(void* block, std::size_t size) noexcept {
  return reallocate(block, size, BLOCKYARD_FRAME, [=] { return real.realloc(block, size); });
}

BY_API void* reallocarray(void* block, std::size_t count, std::size_t size) noexcept {
  std::size_t total = 0;
  if (__builtin_mul_overflow(count, size, &total)) {
    errno = ENOMEM;
    return nullptr;
  }
  return reallocate(block, total, BLOCKYARD_FRAME, [=] { return real.realloc(block, total); });
}

BY_API int posix_memalign(void** result, std::size_t alignment, std::size_t size) noexcept {
  int error = 0;
  allocate(RecordKind::allocate_aligned, size, alignment, BLOCKYARD_FRAME, [&]() -> void* {
    error = real.posix_memalign(result, alignment, size);
    return error == 0 ? *result : nullptr;
  });
  return error;
}

BY_API void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return allocate(RecordKind::allocate_aligned, size, alignment, BLOCKYARD_FRAME,
                  [=] { return real.aligned_alloc(alignment, size); });
}

BY_API void* memalign(std::size_t alignment, std::size_t size) noexcept {
  return allocate(RecordKind::allocate_aligned, size, alignment, BLOCKYARD_FRAME,
                  [=] { return real.memalign(alignment, size); });
}

BY_API void* valloc(std::size_t size) noexcept {
  return allocate(RecordKind::allocate_aligned, size, system_page_bytes(), BLOCKYARD_FRAME,
                  [=] { return real.valloc(size); });
}

BY_API void* pvalloc(std::size_t size) noexcept {
  return allocate(RecordKind::allocate_aligned, size, system_page_bytes(), BLOCKYARD_FRAME,
                  [=] { return real.pvalloc(size); });
}

// From C23; harmless on a libc that lacks them.
BY_API void free_sized(void* block, std::size_t) noexcept { release(block, BLOCKYARD_FRAME); }
BY_API void free_aligned_sized(void* block, std::size_t, std::size_t) noexcept { release(block, BLOCKYARD_FRAME); }

}  // extern "C"
