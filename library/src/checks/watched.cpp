#include "checks/watched.hpp"

#include <cstring>

#include "base/process.hpp"
#include "checks/report.hpp"
#include "checks/valgrind.hpp"

// In a program without AddressSanitizer these are null.
extern "C" {
__attribute__((weak)) void __asan_poison_memory_region(void const volatile* address, std::size_t size);
__attribute__((weak)) void __asan_unpoison_memory_region(void const volatile* address, std::size_t size);
}

namespace blockyard::checks {
namespace {

bool under_address_sanitizer() { return __asan_poison_memory_region != nullptr; }

}  // namespace

bool are_on() {
#if BLOCKYARD_CHECKED
  return true;
#else
  static constinit base::Once<bool> on;
  return on.get([] {
    return RUNNING_ON_VALGRIND != 0 || under_address_sanitizer() || base::read_number("BLOCKYARD_CHECKS", 0, 1) == 1;
  });
#endif
}

bool fill_hidden() { return are_on() && !under_address_sanitizer() && RUNNING_ON_VALGRIND == 0; }

void hide(void* memory, std::size_t bytes) {
  if (bytes == 0 || !are_on()) {
    return;
  }
  if (under_address_sanitizer()) {
    __asan_poison_memory_region(memory, bytes);
  } else {
    VALGRIND_MAKE_MEM_UNDEFINED(memory, bytes);
    std::memset(memory, freed_byte, bytes);
  }
  VALGRIND_MAKE_MEM_NOACCESS(memory, bytes);
}

void show(void* memory, std::size_t bytes) {
  if (bytes == 0 || !are_on()) {
    return;
  }
  if (under_address_sanitizer()) {
    __asan_unpoison_memory_region(memory, bytes);
  }
  VALGRIND_MAKE_MEM_UNDEFINED(memory, bytes);
}

void show_fresh(void* memory, std::size_t bytes) {
  if (are_on()) {
    show(memory, bytes);
    std::memset(memory, fresh_byte, bytes);
    show(memory, bytes);
  }
}

void check_untouched(const void* memory, std::size_t bytes) {
  const auto* const begin = static_cast<const unsigned char*>(memory);
  const auto* const end = begin + (fill_hidden() ? bytes : 0);
  if (const auto* const written = std::find_if(begin, end, [](unsigned char byte) { return byte != freed_byte; });
      written != end) {
    report_fault("use after free (memory was written to after its frame had ended or its block was freed)", written);
  }
}

const base::Observer* listener() {
#if BLOCKYARD_OBSERVED
  static constinit base::Once<const base::Observer*> observer;
  return observer.get(base::block_observer);
#else
  return nullptr;
#endif
}

void announce_allocated(const void* block, std::size_t size, std::size_t alignment) {
  if (const base::Observer* const heard = listener()) {
    heard->block_allocated(block, size, alignment);
  }
}

void announce_freed(const void* block) {
  if (const base::Observer* const heard = listener()) {
    heard->block_freed(block);
  }
}

}  // namespace blockyard::checks
