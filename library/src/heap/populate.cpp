#include "heap/populate.hpp"

#include <algorithm>

#include "base/pages.hpp"
#include "heap/huge_chunks.hpp"

namespace blockyard::heap {

namespace {

// A dirty run that is long enough to become part of the reserve.
PageRun take_dirty(PageHeap& pages) {
  const PageRun run = pages.take_free(PageState::free_dirty);
  if (run && run.length < PageHeap::reserve_run) {
    pages.free(run.first, PageState::free_dirty);
    return {};
  }
  return run;
}

}  // namespace

bool populate_chunk(Supply& supply, bool dirty_first, bool may_try_huge) {
  PageHeap& pages = supply.pages;
  PageRun run = dirty_first ? take_dirty(pages) : PageRun{};
  if (!run) {
    run = pages.allocate(pages_per_chunk, pages_per_chunk, Prefer::decommitted, PageState::in_work);
  }
  if (!run) {
    run = take_dirty(pages);
  }
  if (!run) {
    return false;
  }
  populate_tables(run.first, run.length);
  if (run.from == PageState::free_decommitted) {
    const FirstTouch touch(run.first, may_try_huge);
    supply.populate(run.first, run.length, supply.counts.populated_by_janitor);
  } else {
    supply.populate(run.first, run.length, supply.counts.populated_by_janitor);
  }
  pages.free(run.first, PageState::free_ready);
  return true;
}

bool cut_ready_slab(Supply& supply, std::uint32_t slices) {
  const auto length = static_cast<std::uint32_t>(slices * pages_per_slice);
  const PageRun run = supply.pages.allocate(length, pages_per_slice, Prefer::ready, PageState::used_slab);
  if (!run) {
    return false;
  }
  if (run.from != PageState::free_ready) {
    populate_tables(run.first, length);
    supply.populate(run.first, length, supply.counts.populated_by_janitor);
  }
  supply.ready_slabs.give(slice_of_page(run.first), slices);
  return true;
}

bool prefault(Supply& supply, std::size_t bytes) {
  // More than there is would be populated until the system ends the process.
  if (bytes > std::min(region.most_bytes, base::memory_of_machine())) {
    return false;
  }
  // Each turn adds a run of the reserve. Where other threads take as fast as this one populates, that much is enough.
  const std::uint64_t wanted = bytes >> page_shift;
  const std::uint64_t most = wanted / PageHeap::reserve_run + 2;
  for (std::uint64_t turn = 0; turn < most && supply.pages.reserve_pages() < wanted; ++turn) {
    if (!populate_chunk(supply, true, true)) {
      return false;
    }
  }
  return true;
}

void make_first_reserve(Supply& supply) {
  prefault(supply, settings.reserve_bytes);
  for (const std::uint32_t slices : ReadySlabs::lengths) {
    while (supply.ready_slabs.count(slices) < ReadySlabs::target(slices) && supply.pages.reserve_pages() != 0 &&
           cut_ready_slab(supply, slices)) {
    }
  }
}

}  // namespace blockyard::heap
