// The heap's figures and its invariant walker, both over all heaps of the process.
#include "heap/checked/plain_names.hpp"
// Above: in checked builds by_heap_check has another name.
#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>

#include "base/pages.hpp"
#include "blockyard/heap.h"
#include "heap/api/start.hpp"
#include "heap/background/maintenance.hpp"
#include "heap/front/heap_contents.hpp"
#include "heap/front/heap_table.hpp"
#include "heap/front/slabs.hpp"
#include "heap/pages/page_allocator.hpp"
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
  return broken;
}

}  // extern "C"
