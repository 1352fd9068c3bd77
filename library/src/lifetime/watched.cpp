// Checks and announcements of blocks in watched processes.
#include "lifetime/watched.hpp"

#include <algorithm>
#include <cstring>

#include "base/pages.hpp"
#include "base/poison.hpp"
#include "heap/fault.hpp"

namespace blockyard::lifetime {

bool is_observed() {
  static const bool observed = block::watch_listener() != nullptr;
  return observed;
}

void hide(void* memory, std::size_t bytes) {
  if (has_checks()) {
    base::hide(memory, bytes, dead_pattern);
  }
}

bool fills_hidden() { return has_checks() && base::hide_fills(); }

void check_untouched(const void* memory, std::size_t bytes) {
  if (!has_checks()) {
    return;
  }
  if (const void* const written = base::find_write(memory, bytes, dead_pattern)) {
    heap::report_fault("use after free (memory was written to after its frame had ended or its block was freed)",
                       written);
  }
}

void show(void* memory, std::size_t bytes) {
  if (has_checks()) {
    base::show(memory, bytes);
  }
}

void show_fresh(void* memory, std::size_t bytes) {
  if (has_checks()) {
    base::show(memory, bytes);
    std::memset(memory, fresh_pattern, bytes);
    base::show(memory, bytes);
  }
}

void touch_ahead(std::uintptr_t begin, std::uintptr_t end) {
  constexpr std::uintptr_t most = std::uintptr_t{32} << 10;
  const std::uintptr_t page = base::page_size();
  end = std::min(end, begin + most);
  for (std::uintptr_t at = begin; at < end && !is_watched(); at = (at / page + 1) * page) {
    *reinterpret_cast<volatile char*>(at) = 0;  // NOLINT: it was a pointer
  }
}

void announce_allocated(const void* block, std::size_t size, std::size_t alignment) {
  if (is_observed()) {
    block::watch_listener()->block_allocated(block, size, alignment);
  }
}

void announce_freed(const void* block) {
  if (is_observed()) {
    block::watch_listener()->block_freed(block);
  }
}

}  // namespace blockyard::lifetime
