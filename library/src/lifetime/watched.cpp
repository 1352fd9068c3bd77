// Patterns, poison and announcements.
#include "lifetime/watched.hpp"

#include <cstring>

#include "base/observer.hpp"
#include "block/watch.hpp"
#include "heap/fault.hpp"

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

namespace blockyard::lifetime {
namespace {

bool poisons() { return __asan_poison_memory_region != nullptr; }

}  // namespace

bool is_checked() {
  static const bool checked = block::process_is_checked();
  return checked;
}

bool is_observed() {
#if BLOCKYARD_OBSERVED
  static const bool observed = base::observer() != nullptr;
  return observed;
#else
  return false;
#endif
}

void hide(void* memory, std::size_t bytes) {
  if (!is_checked() || bytes == 0) {
    return;
  }
  if (poisons()) {
    __asan_poison_memory_region(memory, bytes);
  } else {
    VALGRIND_MAKE_MEM_UNDEFINED(memory, bytes);
    std::memset(memory, dead_pattern, bytes);
  }
  VALGRIND_MAKE_MEM_NOACCESS(memory, bytes);
}

bool fills_hidden() { return is_checked() && !poisons() && !RUNNING_ON_VALGRIND; }

void check_untouched(const void* memory, std::size_t bytes) {
  if (!fills_hidden()) {
    return;  // they have told already, at the place of the fault
  }
  const auto* const content = static_cast<const unsigned char*>(memory);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (content[i] != dead_pattern) {
      heap::report_fault("use after free (memory was written to after its frame had ended or its block was freed)",
                         content + i);
    }
  }
}

void show(void* memory, std::size_t bytes) {
  if (!is_checked() || bytes == 0) {
    return;
  }
  if (poisons()) {
    __asan_unpoison_memory_region(memory, bytes);
  }
  VALGRIND_MAKE_MEM_UNDEFINED(memory, bytes);
}

void show_fresh(void* memory, std::size_t bytes) {
  if (!is_checked()) {
    return;
  }
  show(memory, bytes);
  std::memset(memory, fresh_pattern, bytes);
  VALGRIND_MAKE_MEM_UNDEFINED(memory, bytes);
}

void announce_allocated(const void* block, std::size_t size, std::size_t alignment) {
  if (is_observed()) {
    base::observer()->block_allocated(block, size, alignment);
  }
}

void announce_freed(const void* block) {
  if (is_observed()) {
    base::observer()->block_freed(block);
  }
}

}  // namespace blockyard::lifetime
