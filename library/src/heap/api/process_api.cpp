// by_heap_...: the heap's figures and its invariant walker, both over all heaps of the process, and what a program may
// set.

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <utility>

#include "base/pages.hpp"
#include "blockyard/heap.h"
#include "heap/api/start.hpp"
#include "heap/background/background_thread.hpp"
#include "heap/background/maintenance.hpp"
#include "heap/front/heap_table.hpp"
#include "heap/front/small_blocks.hpp"
#include "heap/guard/guard.hpp"
#include "heap/pages/page_allocator.hpp"
#include "heap/settings.hpp"
#include "heap/transfer/depot.hpp"

using namespace blockyard::heap;

namespace {

// Slabs that stand ready are used pages that nobody uses. The background thread takes the pages first and counts the
// slab then, or gives a slab back the other way round: where the count was the same before and after, at most one slab
// is in between.
std::pair<PageHeap::Totals, std::uint64_t> totals_and_ready_slab_bytes() {
  PageHeap::Totals totals;
  std::uint64_t before = page_allocator.ready_slabs.pages();
  for (int tries = 0; tries < 16; ++tries) {
    totals = page_allocator.pages.totals();
    const std::uint64_t after = page_allocator.ready_slabs.pages();
    if (after == before) {
      break;
    }
    before = after;
  }
  return {totals, before << page_shift};
}

}  // namespace

extern "C" {

void by_heap_get_statistics(by_heap_statistics* statistics) {
  *statistics = {};
  if (!initialise()) {
    return;
  }
  const auto read = [](const Atomic<std::uint64_t>& counter) { return counter.load(std::memory_order_relaxed); };
  const Counts& counts = page_allocator.counts;
  statistics->ready_misses_small = read(counts.ready_misses_slab);
  statistics->ready_misses_medium = read(counts.ready_misses_medium);
  statistics->large_blocks = read(counts.large_blocks);
  statistics->populated_by_janitor = read(counts.populated_ahead) << page_shift;
  statistics->populated_by_program = read(counts.populated_by_program) << page_shift;
  statistics->purged = page_allocator.purge.purged() << page_shift;

  // So that what is used and what slabs there are is of one moment as far as the background thread goes: under this
  // lock alone it gives back slabs of heaps that wait.
  std::unique_lock hold(maintenance.sweep_lock);
  const auto [totals, ready_slabs] = totals_and_ready_slab_bytes();
  statistics->ready = (totals.ready << page_shift) + ready_slabs;
  statistics->committed = (totals.ready + totals.dirty + totals.used + totals.in_work) << page_shift;
  const std::uint64_t used = totals.used << page_shift;
  statistics->used = used > ready_slabs ? used - ready_slabs : 0;

  // Threads go on meanwhile, and the counts of one slab are not of one moment: what is taken off may be more than there
  // was when the rest was added. So the sum may fall below zero for a moment, or rise above what is used.
  std::uint64_t slab_bytes = 0;
  std::uint64_t live = 0;
  process_depot.for_each([&](const void*, unsigned size_class) { live -= class_bytes(size_class); });
  process_heaps.for_each([&](const ThreadHeap* heap) {
    statistics->remote_frees_adopted += heap->remote_adopted;
    live += live_bytes(heap);
    for_each_slab(heap, [&](const Slab* slab) {
      slab_bytes += slab->slices * slice_bytes;
      statistics->remote_frees_waiting += read(region.remote_frees[index_of(slab)].remote) >> 32;
    });
  });
  hold.unlock();
  statistics->resident = blockyard::base::resident_bytes(
      region.base + never_mapped, (std::max(totals.top << page_shift, std::uint64_t{never_mapped}) - never_mapped));
  statistics->heaps = process_heaps.in_use();
  // Blocks of whole pages are live as a whole.
  const std::uint64_t page_blocks = statistics->used > slab_bytes ? statistics->used - slab_bytes : 0;
  statistics->live = static_cast<std::uint64_t>(std::clamp<std::int64_t>(
      static_cast<std::int64_t>(live + page_blocks), 0, static_cast<std::int64_t>(statistics->used)));
  if (statistics->used > 0) {
    statistics->fragmentation = 1.0 - static_cast<double>(statistics->live) / static_cast<double>(statistics->used);
  }
}

const char* by_heap_check(void) {
  if (!initialise()) {
    return "the heap could not be readied: no address space";
  }
  const char* broken = page_allocator.pages.check();
  const auto first = [&](const char* found) { broken = broken != nullptr ? broken : found; };
  const std::lock_guard hold(maintenance.sweep_lock);
  process_heaps.for_each([&](const ThreadHeap* heap) { first(broken == nullptr ? check(heap) : nullptr); });
  process_depot.for_each([&](const void* block, unsigned size_class) { first(check_handed_over(block, size_class)); });
#if BLOCKYARD_CHECKED
  first(broken == nullptr ? guard::check_blocks() : nullptr);
#endif
  return broken;
}

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
  if (ThreadHeap* const heap = HeapTable::of_thread(); heap != &empty_heap) {
    // One list at a time, so that the clock is read often enough for any budget.
    const std::uint64_t started = blockyard::base::program_monotonic_ns();
    while (adopt_pending(heap, 1) != 0 && blockyard::base::program_monotonic_ns() - started < budget_ns) {
    }
  }
  if (!background.is_running() && initialise()) {
    maintenance.run(budget_ns, false);
  }
}

}  // extern "C"
