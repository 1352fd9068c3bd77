// An allocator with a fault planted in it: every 10,000th malloc takes half a millisecond longer. In trial-frames,
// which asks for a hundred blocks a frame, that is one frame of a hundred.
#include <cstddef>
#include <ctime>

extern "C" {
void* __libc_malloc(std::size_t size);
void __libc_free(void* block);
void* malloc(std::size_t size);
void free(void* block);
}

namespace {
unsigned long calls = 0;
}

void* malloc(std::size_t size) {
  if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % 10'000 == 0) {
    const timespec half_a_millisecond{0, 500'000};
    nanosleep(&half_a_millisecond, nullptr);
  }
  return __libc_malloc(size);
}

void free(void* block) { __libc_free(block); }
