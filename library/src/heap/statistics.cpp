// The heap's figures and its invariant walker, both over all heaps of the process.
#include <algorithm>
#include <cstdint>
#include <mutex>

#include "heap/checked/plain_names.hpp"
// Above: in checked builds by_heap_check has another name.
#include "base/pages.hpp"
#include "blockyard/heap.h"
#include "heap/depot.hpp"
#include "heap/process_heap.hpp"

using namespace blockyard::heap;

namespace {

struct Used {
  PageHeap::Totals totals;
  std::uint64_t ready_slabs;  // bytes
};

// Slabs that stand ready are used pages that nobody uses. The janitor takes the pages first and counts the slab then, or
// gives a slab back the other way round: where the count was the same before and after, at most one slab is underway.
Used totals_and_ready_slabs() {
  Used now{};
  std::uint32_t before = process_heap.ready_slabs.granules();
  for (int looks = 0; looks < 16; ++looks) {
    now.totals = process_heap.pages.totals();
    const std::uint32_t after = process_heap.ready_slabs.granules();
    if (after == before) {
      break;
    }
    before = after;
  }
  now.ready_slabs = std::uint64_t{before} * granule_bytes;
  return now;
}

}  // namespace

extern "C" {

void by_heap_get_statistics(by_heap_statistics* statistics) {
  *statistics = {};
  if (!process_heap.initialise()) {
    return;
  }
  const Counts& counts = process_heap.counts;
  const auto read = [](const Atomic<std::uint64_t>& counter) { return counter.load(std::memory_order_relaxed); };
  statistics->ready_misses_small = read(counts.ready_misses_slab);
  statistics->ready_misses_medium = read(counts.ready_misses_medium);
  statistics->large_blocks = read(counts.large_blocks);
  statistics->populated_by_janitor = read(counts.populated_by_janitor) << page_shift;
  statistics->populated_by_program = read(counts.populated_by_program) << page_shift;
  statistics->purged = read(counts.purged) << page_shift;

  // So that what is used and what slabs there are is of one moment as far as the janitor goes: under this lock alone it
  // gives back slabs of heaps that wait.
  std::unique_lock hold(process_heap.sweep_lock);
  const auto [totals, ready_slabs] = totals_and_ready_slabs();
  statistics->ready = (totals.ready << page_shift) + ready_slabs;
  statistics->committed = (totals.ready + totals.stale + totals.used + totals.in_work) << page_shift;
  const std::uint64_t used = totals.used << page_shift;
  statistics->used = used > ready_slabs ? used - ready_slabs : 0;

  // Threads go on meanwhile, and the counts of one slab are not of one moment: what is taken off may be more than there
  // was when the rest was added. So the sum may fall below zero for a moment, or rise above what is used.
  std::uint64_t slab_bytes = 0;
  std::uint64_t live = 0 - depot.bytes();
  const std::uint32_t heaps = process_heap.heap_count.load(std::memory_order_relaxed);
  for (std::uint32_t index = 1; index <= heaps; ++index) {
    const ThreadHeap* const heap = process_heap.heap_at(index);
    if (!heap->made.load(std::memory_order_acquire)) {
      continue;  // a thread is at it, and it holds nothing yet
    }
    statistics->remote_frees_adopted += heap->remote_adopted;
    live += live_bytes(heap);
    for_each_slab(heap, [&](const Slab* slab) {
      slab_bytes += slab->granules * granule_bytes;
      const auto granule = static_cast<std::size_t>(slab - region.slabs);
      statistics->remote_frees_waiting += region.directory[granule].remote.load(std::memory_order_relaxed) >> 32;
    });
  }
  hold.unlock();
  statistics->resident = blockyard::base::resident_bytes(region.base, totals.top << page_shift);
  statistics->heaps = process_heap.heaps_in_use();
  // Blocks of whole pages are live as a whole; page 0, which is never handed out, is in the page heap's count.
  const std::uint64_t page_blocks =
      statistics->used > slab_bytes + page_bytes ? statistics->used - slab_bytes - page_bytes : 0;
  statistics->live = static_cast<std::uint64_t>(std::clamp<std::int64_t>(
      static_cast<std::int64_t>(live + page_blocks), 0, static_cast<std::int64_t>(statistics->used)));
  if (statistics->used > 0) {
    statistics->fragmentation = 1.0 - static_cast<double>(statistics->live) / static_cast<double>(statistics->used);
  }
}

const char* by_heap_check(void) {
  if (!process_heap.initialise()) {
    return "the heap could not be readied: no address space";
  }
  if (const char* const broken = process_heap.pages.check(); broken != nullptr) {
    return broken;
  }
  const std::lock_guard hold(process_heap.sweep_lock);
  const std::uint32_t heaps = process_heap.heap_count.load(std::memory_order_relaxed);
  for (std::uint32_t index = 1; index <= heaps; ++index) {
    if (const char* const broken = check(process_heap.heap_at(index)); broken != nullptr) {
      return broken;
    }
  }
  return depot.check();
}

}  // extern "C"
