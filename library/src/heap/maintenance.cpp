#include "heap/maintenance.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/pages.hpp"
#include "heap/bound.hpp"
#include "heap/demand.hpp"
#include "heap/depot.hpp"
#include "heap/page_heap.hpp"
#include "heap/process_heap.hpp"
#include "heap/settings.hpp"
#include "heap/thread_heap.hpp"

namespace blockyard::heap {

constinit Maintenance maintenance;

namespace {

constinit PageHeap& pages = process_heap.pages;
constinit ReadySlabs& ready_slabs = process_heap.ready_slabs;
constinit Demand& demand = process_heap.demand;
constinit Counts& counts = process_heap.counts;

std::uint16_t tick_now() { return process_heap.tick.load(std::memory_order_relaxed); }

bool cut_ready_slab(std::uint32_t granules) {
  const auto length = static_cast<std::uint32_t>(granules * pages_per_granule);
  const PageRun run = pages.allocate(length, pages_per_granule, Prefer::ready, PageState::used_slab);
  if (run.length == 0) {
    return false;
  }
  if (run.from != PageState::free_ready) {
    populate_tables(run.first, length);
    process_heap.touch(run.first, length, counts.populated_by_janitor);
  }
  ready_slabs.give(granule_of_page(run.first), granules);
  return true;
}

// What give_slab kept beyond the target, once the program has stopped taking any. At most 80 slabs, in our defaults; what
// is kept meanwhile is the next round's.
void drop_surplus_slabs() {
  for (const std::uint32_t granules : ReadySlabs::lengths) {
    const std::uint32_t most = ready_slabs.count(granules);
    Bound<Loop::surplus_slabs> surplus(most);
    for (std::uint32_t turn = 0; turn < most && ready_slabs.count(granules) > ReadySlabs::target(granules); ++turn) {
      surplus.turn();
      const std::uint32_t granule = ready_slabs.take(granules);
      if (granule == 0) {
        break;
      }
      pages.free(page_of_granule(granule), PageState::free_ready);
    }
  }
}

// A chunk becomes ready. What large blocks left is mostly resident, and writing to it costs next to nothing: it is taken
// where it would go back otherwise, and where nothing else is to be had.
bool populate_chunk(bool would_purge) {
  PageRun run = would_purge ? pages.take_free(PageState::free_stale) : PageRun{};
  if (run.length == 0) {
    run = pages.allocate(pages_per_chunk, pages_per_chunk, Prefer::raw, PageState::in_work);
  }
  if (run.length == 0) {
    run = pages.take_free(PageState::free_stale);
  }
  if (run.length == 0) {
    return false;
  }
  populate_tables(run.first, run.length);
  process_heap.touch(run.first, run.length, counts.populated_by_janitor);
  pages.free(run.first, PageState::free_ready);
  return true;
}

}  // namespace

void Maintenance::make_first_reserve() {
  prefault(settings.reserve_bytes);
  for (const std::uint32_t granules : ReadySlabs::lengths) {
    Bound<Loop::slabs_at_start> slabs([=] { return ReadySlabs::target(granules); });
    while (ready_slabs.count(granules) < ReadySlabs::target(granules) && pages.reserve_pages() != 0 &&
           cut_ready_slab(granules)) {
      slabs.turn();
    }
  }
}

// Heaps that wait for a thread get no slow paths that would adopt their remote frees: do it for them, a few at a time.
// True where some are left.
bool Maintenance::sweep_parked() {
  const std::lock_guard hold(process_heap.sweep_lock);
  constexpr std::uint32_t most_heaps_swept = 16;
  constexpr std::uint32_t most_adopted = 64;
  constexpr std::uint32_t most_drained = 16;
  constexpr std::uint16_t parked_before_settling = 8;  // ticks: an eighth of a second
  const std::uint16_t now = tick_now();
  bool settled = false;
  bool more = depot.drain(now, false, most_drained);
  Bound<Loop::heaps_swept> heaps(most_heaps_swept);
  for (std::uint32_t swept = 0; swept < most_heaps_swept; ++swept) {
    heaps.turn();
    ThreadHeap* const heap = process_heap.take_to_sweep();
    if (heap == nullptr) {
      free_blocks_of_parked(now);
      break;
    }
    if (const std::uint32_t adopted = adopt_pending(heap, most_adopted); adopted != 0) {
      heap->unsettled = true;
      more |= adopted == most_adopted;
    }
    // One heap a round, and none that was in use a moment ago: while it is swept, a thread that begins cannot have it.
    if (heap->unsettled && !settled && static_cast<std::uint16_t>(now - heap->parked_at) >= parked_before_settling) {
      settle(heap);
      heap->unsettled = false;
      settled = true;
    }
    parked_slabs_ += heap->slabs;
    process_heap.park(heap);
  }
  process_heap.keep_spare_heaps();
  return more || settled;
}

// At the end of a turn of the sweep. A block whose thread has ended, and which the others hand to one another by way of
// the depot, each frame anew, is never free to its slab, and may well be all that a freed level has left in it: 7 MiB of
// slabs were held so for 0.5 MiB of blocks. So while parked heaps have slabs the depot is emptied each half second, and
// more and more seldom where they lose none by it.
void Maintenance::free_blocks_of_parked(std::uint16_t now) {
  constexpr std::uint16_t shortest_wait = 31;    // ticks: half a second
  constexpr std::uint16_t longest_wait = 1'024;  // 16 s
  constexpr std::uint32_t most_magazines = 256;
  const std::uint32_t slabs = std::exchange(parked_slabs_, 0);
  if (slabs < parked_before_ - parked_before_ / 8) {
    empty_after_ = shortest_wait;
    parked_before_ = slabs;
  }
  if (slabs != 0 && static_cast<std::uint16_t>(now - emptied_at_) >= empty_after_) {
    depot.drain(now, true, most_magazines);
    emptied_at_ = now;
    empty_after_ = std::clamp<std::uint16_t>(2 * empty_after_, shortest_wait, longest_wait);
    parked_before_ = slabs;
  }
}

bool Maintenance::run(std::uint64_t budget_ns) {
  if (running_.exchange(true, std::memory_order_acquire)) {
    return false;
  }
  const bool more_to_do = run_alone(budget_ns);
  running_.store(false, std::memory_order_release);
  return more_to_do;
}

void Maintenance::forget() {
  running_.store(false, std::memory_order_relaxed);
  pages.abandon_work();
}

bool Maintenance::run_alone(std::uint64_t budget_ns) {
  const std::uint64_t started = base::monotonic_ns();
  const auto within_budget = [&] { return base::monotonic_ns() - started < budget_ns; };
  process_heap.tick.store(static_cast<std::uint16_t>(started / 16'000'000), std::memory_order_relaxed);
  const PageHeap::Lowest lowest = pages.take_lowest();
  demand.follow(started, lowest.reserve);
  purging_.follow(tick_now(), lowest, demand.reserve_target());
  bool exhausted = false;
  while (!exhausted && pages.reserve_pages() < demand.reserve_target() && within_budget()) {
    exhausted = !populate_chunk(purging_.surplus(pages.totals().used, demand.least_reserve()) != 0);
  }
  demand.set_exhausted(exhausted);
  for (const std::uint32_t granules : ReadySlabs::lengths) {
    while (ready_slabs.count(granules) < ReadySlabs::target(granules) && within_budget() && cut_ready_slab(granules)) {
    }
  }
  if (demand.taken_lately() == 0) {
    drop_surplus_slabs();
  }
  const bool swept = sweep_parked();
  // Four chunks a round: 8 MiB a millisecond gives a freed level of 2 GiB back within its two seconds, and leaves room.
  constexpr int most_purged = 4;
  int purged = 0;
  while (purged < most_purged && within_budget() && purging_.purge_one(pages, demand.least_reserve(), counts.purged)) {
    ++purged;
  }
  purging_.note(pages.take_lowest());
  demand.end_round();
  return swept || purged != 0 || !within_budget();
}

bool Maintenance::prefault(std::size_t bytes) {
  // More than there is would be populated until the system ends the process.
  if (bytes > std::min(region.bytes, base::memory_of_machine())) {
    return false;
  }
  // What large blocks left is populated first, 16 pages at least a turn, which need not make it any more reserve; then
  // chunks. Where other threads take as fast as this one populates, that much is enough.
  const std::uint64_t wanted = bytes >> page_shift;
  const std::uint64_t most = pages.totals().stale / PageHeap::least_taken + wanted / pages_per_chunk + 2;
  Bound<Loop::chunks_prefaulted> chunks(most);
  for (std::uint64_t turn = 0; turn < most && pages.reserve_pages() < wanted; ++turn) {
    chunks.turn();
    if (!populate_chunk(true)) {
      return false;
    }
  }
  return true;
}

std::size_t Maintenance::trim() {
  std::size_t given = 0;
  {
    const std::lock_guard hold(process_heap.sweep_lock);
    depot.drain(tick_now(), true, magazine_count);
  }
  // Each turn takes as much at least; what others free meanwhile may stay.
  const PageHeap::Totals free = pages.totals();
  std::uint64_t left = (free.stale + free.ready) / PageHeap::least_taken;
  Bound<Loop::runs_trimmed> runs(left);
  for (const PageState state : {PageState::free_stale, PageState::free_ready}) {
    for (; left != 0; --left) {
      const PageRun run = pages.take_free(state);
      if (run.length == 0) {
        break;
      }
      runs.turn();
      given += std::size_t{run.length} << page_shift;
      purge_run(pages, run, counts.purged);
    }
  }
  return given;
}

}  // namespace blockyard::heap
