#include "heap/pages/page_allocator.hpp"

#include "base/bits.hpp"
#include "base/bound.hpp"
#include "base/pages.hpp"
#include "heap/pages/wakeup.hpp"
#include "pages/injected_failure.hpp"

namespace blockyard::heap {

constinit PageAllocator page_allocator;

namespace {

// The program is about to touch all of a long run: what its first huge page takes decides about the others.
void touch_first_chunk(HugePages& huge_pages, const PageRun& run) {
  const std::uint32_t first = base::align_up(run.first, pages_per_chunk);
  if (first + pages_per_chunk <= run.first + run.length) {
    huge_pages.first_touch(first, false, [=] { touch_without_change(region.page_address(first)); });
  }
}

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

PageRun PageAllocator::take(std::uint32_t length, std::uint32_t alignment, Prefer prefer, PageState use) {
  const PageRun run = pages.allocate(length, alignment, prefer, use);
  return run || failures_are_final ? run : take_at_limit(length, alignment, use);
}

// A program at its limit gets the memory that it has freed: also what the background thread works on, once its round
// has ended, and what it has cut into slabs. A round takes a millisecond, on a busy machine hundreds. `attempt(merged)`
// is done again until it succeeds or nothing is in work; `merged`: all that is free may be looked through.
template <class Attempt>
void PageAllocator::between_rounds(Attempt attempt) {
  constexpr std::uint64_t wait_ns = 100'000;
  constexpr unsigned most_waits = 10'000;
  for (unsigned waits = 0; waits < most_waits; ++waits) {
    if (!working.exchange(true, std::memory_order_acquire)) {
      bool ended = attempt(false);  // the background thread may have had it
      if (!ended) {
        uncut_ready_slabs(true);
        // What a thread purges or populates for itself, outside of rounds, it frees soon.
        ended = attempt(true) || pages.totals().in_work == 0;
      }
      working.store(false, std::memory_order_release);
      if (ended) {
        return;
      }
    }
    base::sleep_for(wait_ns);
  }
}

PageRun PageAllocator::take_at_limit(std::uint32_t length, std::uint32_t alignment, PageState use) {
  const PageHeap::Totals now = pages.totals();
  const std::uint64_t being_cut = ReadySlabs::lengths.back() * pages_per_slice;
  PageRun run;
  if (now.ready + now.dirty + now.decommitted + now.in_work + ready_slabs.pages() + being_cut >= length) {
    between_rounds([&](bool merged) {
      run = merged ? pages.allocate_merged(length, alignment, use)
                   : pages.allocate(length, alignment, Prefer::dirty, use);
      return bool{run};
    });
  }
  return run;
}

bool PageAllocator::grow_at_limit(std::uint32_t page, std::uint32_t length) {
  bool grown = false;
  if (failures_are_final) {
    return false;
  }
  between_rounds([&](bool merged) {
    constexpr std::uint32_t all = ~std::uint32_t{0};
    grown = merged ? pages.grow(page, length, false, all) : pages.grow(page, length, false);
    return grown;
  });
  return grown;
}

void PageAllocator::uncut_ready_slabs(bool all) {
  for (const std::uint32_t slices : ReadySlabs::lengths) {
    const std::uint32_t kept = all ? 0 : ReadySlabs::target(slices);
    // What the program gives back meanwhile may stay.
    for (std::uint32_t left = ready_slabs.count(slices); left != 0 && ready_slabs.count(slices) > kept; --left) {
      if (const std::uint32_t slice = ready_slabs.take(slices); slice != 0) {
        pages.free(page_of_slice(slice), PageState::free_ready);
      }
    }
  }
}

// Nobody is woken for a slab that was taken from a full reserve: a wake-up is a system call.
std::uint32_t PageAllocator::take_slab_of_pages(std::uint32_t slices) {
  const auto length = static_cast<std::uint32_t>(slices * pages_per_slice);
  const PageRun run = take(length, pages_per_slice, Prefer::ready, PageState::used_slab);
  if (run.length == 0) {
    return 0;
  }
  slab_pages_taken_.fetch_add(length, std::memory_order_relaxed);
  if (run.from != PageState::free_ready) {
    counts.ready_misses_slab.fetch_add(1, std::memory_order_relaxed);
    if (populates_on_a_miss()) {
      region.populate_tables(run.first, run.length);
      populate(run.first, length, counts.populated_by_program);
    }
  }
  if (reserve_target.reserve_is_low(pages_in_reserve(), pages.most_used())) {
    background.wake();
  }
  return slice_of_page(run.first);
}

std::uint32_t PageAllocator::take_bare_slab(std::uint32_t slices) {
  const auto length = static_cast<std::uint32_t>(slices * pages_per_slice);
  const PageRun run = pages.allocate(length, pages_per_slice, Prefer::bare, PageState::used_slab);
  if (!run) {
    return 0;
  }
  huge_pages.keep_small(run.first);
  huge_pages.keep_small(run.first + length - 1);  // a slab of some slices may lie across two chunks
  slab_pages_taken_.fetch_add(length, std::memory_order_relaxed);
  return slice_of_page(run.first);
}

void PageAllocator::give_slab(std::uint32_t slice, std::uint32_t slices, bool populated) {
  // Twice the target: what a program frees at once it may want at once, without the page heap's lock.
  if (populated && ready_slabs.count(slices) < 2 * ReadySlabs::target(slices)) {
    ready_slabs.give(slice, slices);
  } else {
    pages.free(page_of_slice(slice), populated ? PageState::free_ready : PageState::free_dirty);
  }
}

void PageAllocator::populate(std::uint32_t first_page, std::uint32_t length, Atomic<std::uint64_t>& counter) {
  // The program: a block that may be populated at all; else what take_free found, or a slab.
  base::Bound populated("pages populated at once", [&] {
    return &counter == &counts.populated_by_program ? medium_limit >> page_shift : std::size_t{2} * pages_per_chunk;
  });
  for (std::uint32_t page = first_page; page < first_page + length; ++page) {
    populated.turn();
    *const_cast<volatile char*>(region.page_address(page)) = 0;
  }
  counter.fetch_add(length, std::memory_order_relaxed);
}

std::uint32_t PageAllocator::take_pages(std::size_t size, std::size_t alignment, bool* zeroed) {
  if (size > region.most_bytes || alignment > region.alignment) {
    return 0;
  }
  const std::uint32_t length = pages_of(size);
  const auto aligned = static_cast<std::uint32_t>(std::max<std::size_t>(alignment >> page_shift, 1));
  const bool large = size > medium_limit;
  const PageRun run = take(length, aligned, large ? Prefer::dirty : Prefer::ready, PageState::used_block);
  if (run.length == 0) {
    return 0;
  }
  PageTag& tag = region.pages[run.first];
  tag.flags = run.from == PageState::free_ready ? page_populated : 0;
  if (zeroed != nullptr) {
    *zeroed = run.from == PageState::free_decommitted;
  }
  if (large) {
    counts.large_blocks.fetch_add(1, std::memory_order_relaxed);
    if (run.from == PageState::free_decommitted && huge_pages.asks()) {
      touch_first_chunk(huge_pages, run);
    }
    return run.first;
  }
  if (run.from != PageState::free_ready) {
    counts.ready_misses_medium.fetch_add(1, std::memory_order_relaxed);
    if (run.from == PageState::free_decommitted && populates_on_a_miss()) {
      region.populate_tables(run.first, length);  // it goes back as ready, and slabs may be cut from it
      populate(run.first, length, counts.populated_by_program);
      tag.flags = page_populated;
    }
  }
  if (reserve_target.reserve_is_low(pages_in_reserve(), pages.most_used())) {
    background.wake();
  }
  return run.first;
}

void PageAllocator::give_pages(std::uint32_t first_page) {
  pages.prefetch_ends(first_page);
  const PageTag& tag = region.pages[first_page];
  const bool populated = (tag.flags & page_populated) != 0;
  const bool purgeable = tag.length >= pages_per_chunk;
  pages.free(first_page, populated ? PageState::free_ready : PageState::free_dirty);
  // In a small program little can stay that nobody gives back.
  constexpr std::uint64_t small_program = (std::uint64_t{16} << 20) >> page_shift;
  if (purgeable && pages.most_used() > small_program) {
    background.request();  // it gives back what is not wanted again
  }
}

bool PageAllocator::populate_chunk(bool dirty_first, bool may_try_huge) {
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
  region.populate_tables(run.first, run.length);
  const auto touch = [&] { populate(run.first, run.length, counts.populated_ahead); };
  if (run.from == PageState::free_decommitted) {
    huge_pages.first_touch(run.first, may_try_huge, touch);
  } else {
    touch();
  }
  pages.free(run.first, PageState::free_ready);
  return true;
}

bool PageAllocator::cut_ready_slab(std::uint32_t slices) {
  const auto length = static_cast<std::uint32_t>(slices * pages_per_slice);
  const PageRun run = pages.allocate(length, pages_per_slice, Prefer::ready, PageState::used_slab);
  if (!run) {
    return false;
  }
  if (run.from != PageState::free_ready) {
    region.populate_tables(run.first, length);
    populate(run.first, length, counts.populated_ahead);
  }
  ready_slabs.give(slice_of_page(run.first), slices);
  return true;
}

bool PageAllocator::prefault(std::size_t bytes) {
  // More than there is would be populated until the system ends the process.
  if (bytes > std::min(region.most_bytes, base::memory_of_machine())) {
    return false;
  }
  // Each turn adds a run of the reserve. Where other threads take as fast as this one populates, that much is enough.
  const std::uint64_t wanted = bytes >> page_shift;
  const std::uint64_t most = wanted / PageHeap::reserve_run + 2;
  for (std::uint64_t turn = 0; turn < most && pages.pages_in_reserve() < wanted; ++turn) {
    if (!populate_chunk(true, true)) {
      return false;
    }
  }
  return true;
}

void PageAllocator::make_first_reserve() {
  prefault(settings.reserve_bytes);
  for (const std::uint32_t slices : ReadySlabs::lengths) {
    while (ready_slabs.count(slices) < ReadySlabs::target(slices) && pages.pages_in_reserve() != 0 &&
           cut_ready_slab(slices)) {
    }
  }
}

}  // namespace blockyard::heap
