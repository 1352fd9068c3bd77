// by_heap_...: what a program may set, and ask of the heap as a whole.
#include <algorithm>
#include <cerrno>

#include "base/pages.hpp"
#include "blockyard/heap.h"
#include "heap/api/start.hpp"
#include "heap/background/background_thread.hpp"
#include "heap/background/maintenance.hpp"
#include "heap/front/slabs.hpp"
#include "heap/pages/page_allocator.hpp"
#include "heap/settings.hpp"

using namespace blockyard::heap;

extern "C" {

int by_heap_set(by_heap_setting setting, uint64_t value) {
  const auto which = static_cast<std::size_t>(setting);
  if (!is_in_range(which, value)) {
    errno = EINVAL;
    return -1;
  }
  if (!initialise()) {
    errno = ENOMEM;
    return -1;
  }
  set_setting(which, value);
  if (setting == BY_HEAP_HUGE_PAGES) {
    page_allocator.huge_pages.allow(value != 0);
  }
  background.wake();
  tend_background_thread();
  return 0;
}

uint64_t by_heap_get(by_heap_setting setting) {
  return initialise() ? get_setting(static_cast<std::size_t>(setting)) : 0;
}

void by_heap_reserve(size_t bytes) {
  // More than there is would be populated until the system ends the process.
  if (initialise() && bytes <= std::min(region.most_bytes, blockyard::base::memory_of_machine())) {
    page_allocator.reserve_target.keep_ready(bytes);
    background.wake();
    tend_background_thread();
  }
}

int by_heap_prefault(size_t bytes) {
  if (initialise() && page_allocator.prefault(bytes)) {
    return 0;
  }
  errno = ENOMEM;
  return -1;
}

size_t by_heap_trim(void) { return initialise() ? maintenance.trim() : 0; }

void by_heap_frame_end(uint64_t budget_ns) {
  if (thread_heap != &empty_heap) {
    // One list at a time, so that the clock is read often enough for any budget.
    const std::uint64_t started = blockyard::base::program_monotonic_ns();
    while (adopt_pending(thread_heap, 1) != 0 && blockyard::base::program_monotonic_ns() - started < budget_ns) {
    }
  }
  if (!background.is_running() && initialise()) {
    maintenance.run(budget_ns, false);
  }
}

}  // extern "C"
