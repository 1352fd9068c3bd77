// A heap that a program links, as jemalloc and tcmalloc are: of what it defines, the forms of new that a preloaded heap
// might leave to the C++ library.
#include <cstddef>
#include <new>

namespace {

alignas(64) char memory[1 << 20];
std::size_t used = 0;

void* take(std::size_t size) {
  void* const block = memory + used;
  used += (size + 63) / 64 * 64;
  return block;
}

}  // namespace

#define BY_EXPORT __attribute__((visibility("default")))
BY_EXPORT void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return take(size); }
BY_EXPORT void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return take(size); }
BY_EXPORT void* operator new(std::size_t size, std::align_val_t, const std::nothrow_t&) noexcept { return take(size); }
BY_EXPORT void* operator new[](std::size_t size, std::align_val_t, const std::nothrow_t&) noexcept {
  return take(size);
}
extern "C" BY_EXPORT int other_heap() { return used == 0 ? 1 : 0; }
