#include "base/poison.hpp"

#include <algorithm>
#include <cstring>

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_NOACCESS(address, size) static_cast<void>(0)
#define VALGRIND_MAKE_MEM_UNDEFINED(address, size) static_cast<void>(0)
#define RUNNING_ON_VALGRIND 0
#endif

// In a program without AddressSanitizer these are null.
extern "C" {
__attribute__((weak)) void __asan_poison_memory_region(void const volatile* address, std::size_t size);
__attribute__((weak)) void __asan_unpoison_memory_region(void const volatile* address, std::size_t size);
}

namespace blockyard::base {

bool under_address_sanitizer() { return __asan_poison_memory_region != nullptr; }

bool under_valgrind() { return RUNNING_ON_VALGRIND != 0; }

void hide(void* memory, std::size_t bytes, unsigned char pattern) {
  if (bytes == 0) {
    return;
  }
  if (under_address_sanitizer()) {
    __asan_poison_memory_region(memory, bytes);
  } else {
    VALGRIND_MAKE_MEM_UNDEFINED(memory, bytes);
    std::memset(memory, pattern, bytes);
  }
  VALGRIND_MAKE_MEM_NOACCESS(memory, bytes);
}

void show(void* memory, std::size_t bytes) {
  if (bytes == 0) {
    return;
  }
  if (under_address_sanitizer()) {
    __asan_unpoison_memory_region(memory, bytes);
  }
  VALGRIND_MAKE_MEM_UNDEFINED(memory, bytes);
}

const void* find_write(const void* memory, std::size_t bytes, unsigned char pattern) {
  if (!hide_fills()) {
    return nullptr;
  }
  const auto* const begin = static_cast<const unsigned char*>(memory);
  const auto* const found = std::find_if(begin, begin + bytes, [=](unsigned char byte) { return byte != pattern; });
  return found == begin + bytes ? nullptr : found;
}

}  // namespace blockyard::base
