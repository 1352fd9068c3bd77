// An allocator that ends the program at its thousandth malloc.
#include <cstddef>
#include <cstdlib>

extern "C" {
void* __libc_malloc(std::size_t size);
void __libc_free(void* block);
void* malloc(std::size_t size) noexcept;
void free(void* block) noexcept;
}

namespace {
unsigned long calls = 0;
}

void* malloc(std::size_t size) noexcept {
  if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) == 1'000) std::abort();
  return __libc_malloc(size);
}

void free(void* block) noexcept { __libc_free(block); }
