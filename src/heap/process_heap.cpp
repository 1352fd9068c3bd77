#include "heap/process_heap.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "base/pages.hpp"
#include "heap/bound.hpp"
#include "heap/depot.hpp"
#include "heap/huge_chunks.hpp"
#include "heap/injected_failure.hpp"
#include "heap/janitor.hpp"
#include "heap/secret.hpp"

namespace blockyard::heap {

constinit ProcessHeap process_heap;

namespace {

constexpr std::array<std::uint32_t, 3> slab_granules{1, 2, 4};
constexpr std::uint16_t ticks_before_quiet = 62;  // a second

pthread_key_t exit_key;

auto slab_link(std::uint32_t granule) -> Atomic<std::uint32_t>& { return region.directory[granule].pending_next; }
auto heap_link(std::uint32_t index) -> Atomic<std::uint32_t>& { return process_heap.heap_at(index)->parked_next; }

std::uint32_t granule_of_page(std::uint32_t page) { return static_cast<std::uint32_t>(page / pages_per_granule); }
std::uint32_t page_of_granule(std::uint32_t granule) { return static_cast<std::uint32_t>(granule * pages_per_granule); }

// Runs at a thread's end, after C++ thread_local destructors. A later destructor of another key may still allocate: the
// thread then enters again, and this runs once more in the next of the rounds that POSIX grants.
void on_thread_exit(void*) { process_heap.leave_thread(); }

}  // namespace

bool ProcessHeap::initialise() {
  int seen = state_.load(std::memory_order_acquire);
  if (seen == 2) {
    return true;
  }
  if (seen == 0 && state_.compare_exchange_strong(seen, 1, std::memory_order_acquire)) {
    read_settings();
    link_key = secret();
    const bool ready = reserve_region() && reserve_heaps() && pthread_key_create(&exit_key, on_thread_exit) == 0;
    if (ready) {
      ask_for_huge_pages(settings.huge_pages);
      depot.initialise();
      prefault(settings.reserve_bytes);
      for (const std::uint32_t granules : slab_granules) {
        Bound<Loop::slabs_at_start> slabs([=] { return ready_target(granules); });
        while (ready_of(granules).count.load(std::memory_order_relaxed) < ready_target(granules) &&
               pages.reserve_pages() != 0 && cut_ready_slab(granules)) {
          slabs.turn();
        }
      }
    }
    state_.store(ready ? 2 : 3, std::memory_order_release);
    return ready;
  }
  while ((seen = state_.load(std::memory_order_acquire)) == 1) {
    base::yield_thread();
  }
  return seen == 2;
}

// Room for 65,535 heaps, fewer where the region is small: the table takes a 64th of its address space at most, or has
// room for 63.
bool ProcessHeap::reserve_heaps() {
  most_heaps_ =
      static_cast<std::uint32_t>(std::clamp<std::size_t>(region.bytes / 64 / sizeof(ThreadHeap), 1u << 6, 1u << 16));
  heaps_ = static_cast<ThreadHeap*>(
      base::reserve_pages((sizeof(ThreadHeap) * most_heaps_ + page_bytes - 1) & ~(page_bytes - 1), page_bytes));
  return heaps_ != nullptr;
}

// The heap that waited (0: none did), or else a new one.
ThreadHeap* ProcessHeap::new_heap(std::uint32_t waiting) {
  if (waiting != 0) {
    return heap_at(waiting);
  }
  if (const std::uint32_t spare = spares_.pop(heap_link); spare != 0) {
    spare_count_.fetch_sub(1, std::memory_order_relaxed);
    return heap_at(spare);
  }
  return construct_heap();
}

ThreadHeap* ProcessHeap::construct_heap() {
  std::uint32_t index = heap_count.load(std::memory_order_relaxed);
  do {
    if (index + 1 >= most_heaps_ || acquisition_fails()) {
      return nullptr;
    }
  } while (!heap_count.compare_exchange_weak(index, index + 1, std::memory_order_relaxed));
  auto* const heap = new (heap_at(index + 1)) ThreadHeap(&empty_slab, index + 1);
  heap->made.store(true, std::memory_order_release);
  return heap;
}

// Heaps that no thread ever had, made in advance: a new thread's first allocation causes no page fault for its heap,
// also when a few threads begin together.
void ProcessHeap::keep_spare_heaps() {
  constexpr std::uint32_t spares = 4;
  Bound<Loop::spare_heaps> made(spares);
  // Threads that begin meanwhile may take as many: not more of them are made in one round for that.
  for (std::uint32_t turn = 0; turn < spares && spare_count_.load(std::memory_order_relaxed) < spares; ++turn) {
    made.turn();
    ThreadHeap* const heap = construct_heap();
    if (heap == nullptr) {
      return;
    }
    spare_count_.fetch_add(1, std::memory_order_relaxed);
    spares_.push(heap->index, heap_link);
  }
}

std::uint32_t ProcessHeap::heaps_in_use() const {
  return heap_count.load(std::memory_order_relaxed) - spare_count_.load(std::memory_order_relaxed);
}

ThreadHeap* ProcessHeap::enter_thread() {
  ThreadHeap* const heap = initialise() ? new_heap(parked_.take(heap_link)) : nullptr;
  if (heap != nullptr) {
    thread_heap = heap;
    // Any non-null value makes the destructor run; the heap itself is found through thread_heap.
    pthread_setspecific(exit_key, heap);
  }
  return heap;
}

ThreadHeap* ProcessHeap::make_own_heap() {
  ThreadHeap* const heap = initialise() ? new_heap(parked_.take_empty(heap_link)) : nullptr;
  if (heap != nullptr) {
    heap->own = true;
  }
  return heap;
}

void ProcessHeap::destroy_own_heap(ThreadHeap* heap) {
  retire_all(heap);
  Bound<Loop::blocks_of_own_heap> blocks([&] { return pages.totals().used / shortest_run; });
  while (heap->blocks != 0) {
    blocks.turn();
    free_pages(region.page_address(heap->blocks));
  }
  heap->own = false;
  parked_.park_empty(heap->index, heap_link);
}

void ProcessHeap::leave_thread() {
  ThreadHeap* const heap = thread_heap;
  if (heap == &empty_heap) {
    return;
  }
  thread_heap = &empty_heap;
  frees_without_heap = never_again;
  heap->unsettled = true;
  heap->parked_at = tick.load(std::memory_order_relaxed);
  parked_.park(heap->index, heap_link);
}

std::uint32_t ProcessHeap::ready_granules() const {
  std::uint32_t granules = 0;
  for (unsigned length = 0; length < slab_lengths; ++length) {
    granules += ready_slabs_[length].count.load(std::memory_order_relaxed) * slab_granules[length];
  }
  return granules;
}

// Longer slabs are taken far less often: an eighth as many of each.
std::uint32_t ProcessHeap::ready_target(std::uint32_t granules) {
  const std::uint32_t slabs = settings.ready_slabs;
  return granules == 1 ? slabs : slabs / 8;
}

void ProcessHeap::push_ready(std::uint32_t granule, std::uint32_t granules) {
  ReadySlabs& ready = ready_of(granules);
  ready.count.fetch_add(1, std::memory_order_relaxed);
  ready.stack.push(granule, slab_link);
}

bool ProcessHeap::cut_ready_slab(std::uint32_t granules) {
  const auto length = static_cast<std::uint32_t>(granules * pages_per_granule);
  const PageRun run = pages.allocate(length, pages_per_granule, Prefer::small_pages, PageState::used_slab);
  if (run.length == 0) {
    return false;
  }
  if (run.from != PageState::free_ready) {
    populate_tables(run.first, length);
    touch(run.first, length, counts.populated_by_janitor);
  }
  push_ready(granule_of_page(run.first), granules);
  return true;
}

// What give_slab kept beyond the target, once the program has stopped taking any. At most 80 slabs, in our defaults; what
// is kept meanwhile is the next round's.
void ProcessHeap::drop_surplus_slabs() {
  for (const std::uint32_t granules : slab_granules) {
    ReadySlabs& ready = ready_of(granules);
    const std::uint32_t most = ready.count.load(std::memory_order_relaxed);
    Bound<Loop::surplus_slabs> surplus(most);
    for (std::uint32_t turn = 0; turn < most && ready.count.load(std::memory_order_relaxed) > ready_target(granules);
         ++turn) {
      surplus.turn();
      const std::uint32_t granule = ready.stack.pop(slab_link);
      if (granule == 0) {
        break;
      }
      ready.count.fetch_sub(1, std::memory_order_relaxed);
      pages.free(page_of_granule(granule), PageState::free_ready, tick.load(std::memory_order_relaxed));
    }
  }
}

// Nobody is woken for a slab that was taken from a full reserve: a wake-up is a system call of 3 to 10 us.
std::uint32_t ProcessHeap::take_slab(std::uint32_t granules) {
  const auto length = static_cast<std::uint32_t>(granules * pages_per_granule);
  ReadySlabs& ready = ready_of(granules);
  if (const std::uint32_t granule = ready.stack.pop(slab_link); granule != 0) {
    ready.count.fetch_sub(1, std::memory_order_relaxed);
    slab_pages_taken_.fetch_add(length, std::memory_order_relaxed);
    return granule;
  }
  const PageRun run = pages.allocate(length, pages_per_granule, Prefer::ready, PageState::used_slab);
  if (run.length == 0) {
    return 0;
  }
  slab_pages_taken_.fetch_add(length, std::memory_order_relaxed);
  if (run.from != PageState::free_ready) {
    counts.ready_misses_slab.fetch_add(1, std::memory_order_relaxed);
    populate_tables(run.first, run.length);
    touch(run.first, length, counts.populated_by_program);
  }
  if (reserve_is_low()) {
    wake_janitor();
  }
  return granule_of_page(run.first);
}

void ProcessHeap::give_slab(std::uint32_t granule, std::uint32_t granules) {
  // Twice the target: what a program frees at once is what it may want at once, without the page heap's lock.
  if (ready_of(granules).count.load(std::memory_order_relaxed) < 2 * ready_target(granules)) {
    push_ready(granule, granules);
    return;
  }
  pages.free(page_of_granule(granule), PageState::free_ready, tick.load(std::memory_order_relaxed));
}

// One write a page: populating by touching takes only the lock of the mapping, while the populate calls of the kernel
// hold that of the address space and stall every other thread's mmap (measured: 16 ms at p99.9 against 0.05 to 0.08
// ms).
void ProcessHeap::touch(std::uint32_t first_page, std::uint32_t length, Atomic<std::uint64_t>& counter) {
  // The program: a block that may be populated at all; else what take_old found, or a slab.
  Bound<Loop::pages_touched> touched(
      [&] { return &counter == &counts.populated_by_program ? medium_limit >> page_shift : 2 * pages_per_chunk; });
  for (std::uint32_t page = first_page; page < first_page + length; ++page) {
    touched.turn();
    *const_cast<volatile char*>(region.page_address(page)) = 0;
  }
  counter.fetch_add(length, std::memory_order_relaxed);
}

void* ProcessHeap::allocate_pages(std::size_t size, std::size_t alignment, bool* zeroed, ThreadHeap* owner) {
  if (!initialise() || size > region.bytes || alignment > region.alignment) {
    return nullptr;
  }
  const auto length = static_cast<std::uint32_t>((size + page_bytes - 1) >> page_shift);
  const auto aligned = static_cast<std::uint32_t>(std::max<std::size_t>(alignment >> page_shift, 1));
  const bool large = size > medium_limit;
  const PageRun run = pages.allocate(length, aligned, large ? Prefer::stale : Prefer::ready, PageState::used_block);
  if (run.length == 0) {
    return nullptr;
  }
  PageTag& tag = region.pages[run.first];
  tag.flags = run.from == PageState::free_ready ? page_populated : 0;
  if (zeroed != nullptr) {
    *zeroed = run.from == PageState::free_raw;
  }
  if (large) {
    counts.large_blocks.fetch_add(1, std::memory_order_relaxed);
  } else {
    if (run.from != PageState::free_ready) {
      counts.ready_misses_medium.fetch_add(1, std::memory_order_relaxed);
      if (run.from == PageState::free_raw) {
        populate_tables(run.first, length);  // it goes back as ready, and slabs may be cut from it
        touch(run.first, length, counts.populated_by_program);
        tag.flags = page_populated;
      }
    }
    if (reserve_is_low()) {
      wake_janitor();
    }
  }
  if (owner != nullptr) {
    const std::lock_guard hold(pages.lock());
    tag.flags |= page_owned;
    tag.previous = 0;
    tag.next = owner->blocks;
    tag.age = static_cast<std::uint16_t>(owner->index);
    if (tag.next != 0) {
      region.pages[tag.next].previous = run.first;
    }
    owner->blocks = run.first;
  }
  return region.page_address(run.first);
}

void ProcessHeap::free_pages(void* block) {
  const auto first = static_cast<std::uint32_t>(region.page_of(block));
  const PageTag& tag = region.pages[first];
  pages.prefetch_ends(first);
  const bool populated = (tag.flags & page_populated) != 0;
  if ((tag.flags & page_owned) != 0) {
    const std::lock_guard hold(pages.lock());
    if (tag.previous != 0) {
      region.pages[tag.previous].next = tag.next;
    } else {
      heap_at(tag.age)->blocks = tag.next;
    }
    if (tag.next != 0) {
      region.pages[tag.next].previous = tag.previous;
    }
  }
  const bool purgeable = tag.length >= pages_per_chunk;
  pages.free(first, populated ? PageState::free_ready : PageState::free_stale, tick.load(std::memory_order_relaxed));
  if (purgeable) {
    want_janitor();  // it gives back what is not wanted again before it is old, and never sleeps that long
  }
}

// A burst in one round may be followed by as large a one before the janitor is back: keep twice the largest recent
// round's. What counts is how far the reserve fell and what it could not serve: what is freed and taken again meanwhile
// needs no more of it. What is to be populated for it is forgotten by a half each tick of 16 ms, so that nothing is
// populated for a load that is over; what is to be kept once it is populated, in 176 ms.
void ProcessHeap::follow_demand(std::uint64_t now_ns) {
  // Of a longer round its part: the janitor lets rounds be long where little is taken.
  constexpr std::uint64_t round_ns = 8'000'000;
  const std::uint64_t elapsed = std::max(now_ns - followed_at_, round_ns);
  followed_at_ = now_ns;
  const std::uint16_t now_tick = tick.load(std::memory_order_relaxed);
  const std::uint16_t ticks = static_cast<std::uint16_t>(now_tick - decayed_at_);
  decayed_at_ = now_tick;
  const std::uint64_t consumed = slab_pages_taken_.load(std::memory_order_relaxed) + pages.pages_taken();
  taken_lately_.store(consumed - consumed_seen_, std::memory_order_relaxed);
  consumed_seen_ = consumed;
  const auto fallen = [](std::uint64_t before, std::uint64_t to) { return before > to ? before - to : 0; };
  const std::uint64_t missed = counts.populated_by_program.load(std::memory_order_relaxed);
  const PageHeap::Lowest lowest = pages.take_lowest();
  const std::uint64_t run_fall = fallen(reserve_left_, lowest.reserve);
  const std::uint64_t slab_fall = fallen(slabs_left_, ready_granules()) * pages_per_granule;
  const std::uint64_t now = (run_fall + slab_fall + (missed - missed_seen_)) * round_ns / elapsed;
  missed_seen_ = missed;
  // Of what may be taken before the janitor is woken, or before slabs come from the page heap under its lock.
  const std::uint64_t room = std::max<std::uint64_t>(fallen(reserve_left_, reserve_target() / 2), 1);
  const std::uint64_t slab_room = std::max<std::uint64_t>(settings.ready_slabs * pages_per_granule, 1);
  const std::uint64_t spent = std::max(16 * run_fall / room, 16 * slab_fall / slab_room);
  // Where nothing is left to populate, coming back sooner would not help.
  spent_.store(
      exhausted_.load(std::memory_order_relaxed) ? 0 : static_cast<unsigned>(std::min<std::uint64_t>(spent, 64)),
      std::memory_order_relaxed);
  // A process that was stopped, or a machine that slept, has not been quiet: at most the janitor's longest sleep counts.
  constexpr int longest_sleep_ticks = 16;
  quiet_ticks_ = static_cast<std::uint16_t>(
      now >= PageHeap::reserve_run ? 0 : std::min(quiet_ticks_ + std::min<int>(ticks, longest_sleep_ticks), 0xFFFF));
  constexpr unsigned most_steps = 64;
  Bound<Loop::steps_of_decay> steps(most_steps);
  for (unsigned step = 0; step < std::min<unsigned>(ticks, most_steps) && past_demand_ != 0; ++step) {
    steps.turn();
    past_demand_ -= (past_demand_ + 15) / 16;
  }
  past_demand_ = std::max(now, past_demand_);
  const std::uint64_t long_blocks = pages.long_blocks_taken();
  const int since_long = std::min(since_long_.load(std::memory_order_relaxed) + ticks, int{ticks_before_quiet});
  since_long_.store(static_cast<std::uint16_t>(long_blocks != long_seen_ ? 0 : since_long), std::memory_order_relaxed);
  long_seen_ = long_blocks;
  // Where blocks come and go, the run that they are cut from is never old, but what of it nobody needed for so long is.
  lowest_now_ = {std::min(lowest_now_.reserve, lowest.reserve), std::min(lowest_now_.ready, lowest.ready)};
  if (static_cast<std::uint16_t>(now_tick - lowest_since_) >= settings.purge_ms / 16) {
    lowest_since_ = now_tick;
    lowest_before_ = std::exchange(lowest_now_, lowest);
  }
  demand_.store(std::max(now, demand_.load(std::memory_order_relaxed) >> std::min<unsigned>(ticks, 63)),
                std::memory_order_relaxed);
}

std::uint64_t ProcessHeap::reserve_for(std::uint64_t demand) {
  const std::uint64_t configured = settings.reserve_bytes >> page_shift;
  return std::max(configured, std::min(2 * demand, 4 * configured));
}

std::uint64_t ProcessHeap::reserve_target() const {
  return std::max(reserve_for(demand_.load(std::memory_order_relaxed)), reserve_floor_.load(std::memory_order_relaxed));
}

// Half, not more: to wake the janitor took the program's thread 20 to 30 us where it had the reserve filled from three
// quarters on.
// Nor where the janitor found nothing to populate, at the limit of the address space: it tries again when it comes by
// itself (measured under ulimit -v: it was woken 300 to 1,000 times a second, for nothing).
bool ProcessHeap::reserve_is_low() const {
  return pages.reserve_pages() < reserve_target() / 2 && !exhausted_.load(std::memory_order_relaxed);
}

// First what large blocks left and nobody wanted for so long that it might have gone back: mostly it is resident, and
// writing to it costs next to nothing.
bool ProcessHeap::populate_chunk() {
  PageHeap::Purge left{.state = PageState::free_stale,
                       .now = tick.load(std::memory_order_relaxed),
                       .minimum_age = static_cast<std::uint16_t>(settings.purge_ms / 16)};
  PageRun run = pages.take_old(left);
  if (run.length == 0) {
    run = pages.allocate(pages_per_chunk, pages_per_chunk, Prefer::raw, PageState::in_work);
  }
  if (run.length == 0) {
    return false;
  }
  populate_tables(run.first, run.length);
  if (run.from == PageState::free_raw) {
    populate_raw_chunk(run.first, since_long_.load(std::memory_order_relaxed) < ticks_before_quiet);
    counts.populated_by_janitor.fetch_add(run.length, std::memory_order_relaxed);
  } else {
    touch(run.first, run.length, counts.populated_by_janitor);
  }
  pages.free(run.first, PageState::free_ready, tick.load(std::memory_order_relaxed));
  return true;
}

// Free pages that are not given back, of those in runs long enough for the reserve. While the program comes and goes: a
// seventh of what is in use less 10 MiB and the shorter runs, since populating again what was given back a moment ago is
// the janitor's dearest work, and more would not leave resident within a quarter above what lives, of which rounding,
// tables, slabs cut in advance and blocks at hand take their part. Once it has taken little for a second: the reserve,
// and an eighth of what is in use beyond 112 MiB.
std::uint64_t ProcessHeap::kept_free(std::uint64_t used, std::uint64_t in_short_runs) const {
  const std::uint64_t target = reserve_target();
  if (quiet_ticks_ >= ticks_before_quiet) {
    return target + kept_of(used, in_short_runs);
  }
  return std::max({target, reserve_for(past_demand_), kept_of(used, in_short_runs)});
}

std::uint64_t ProcessHeap::kept_of(std::uint64_t used, std::uint64_t in_short_runs) const {
  constexpr std::uint64_t none_while_quiet = 56 * pages_per_chunk;
  if (quiet_ticks_ >= ticks_before_quiet) {
    return used > none_while_quiet ? (used - none_while_quiet) / 8 : 0;
  }
  const std::uint64_t other = 5 * pages_per_chunk + in_short_runs;
  return used / 7 > other ? used / 7 - other : 0;
}

// Of all ready pages, in runs of any length and in slabs cut in advance, those that nobody needed for a purge age, beyond
// the reserve, as much as was ever needed at once of late, and what a program that comes and goes has kept for it. Which
// pages they are is all the same: what each frame takes and frees is merged and cut anew each time, and so never old.
std::uint64_t ProcessHeap::never_needed(std::uint64_t used) const {
  const std::uint64_t least = std::min(lowest_before_.ready, lowest_now_.ready) + slabs_left_ * pages_per_granule;
  const std::uint64_t kept = std::max({settings.reserve_bytes >> page_shift,
                                       reserve_floor_.load(std::memory_order_relaxed), past_demand_, kept_of(used, 0)});
  return least > kept ? least - kept : 0;
}

// Gives one old free run back. Short ready runs, which count as no reserve, stay while they are less than 1/32 of what is
// in use, 1/128 while the program takes next to nothing: they serve what fits them. A whole chunk is only given back
// where one is too much, else the next round would populate it again.
bool ProcessHeap::purge_chunk() {
  const PageHeap::Totals totals = pages.totals();
  const std::uint64_t reserve = pages.reserve_pages();
  const std::uint64_t kept = kept_free(totals.used, totals.ready > reserve ? totals.ready - reserve : 0);
  // Short runs are what slabs are cut from, and little each: they wait two seconds.
  PageHeap::Purge purge{.state = PageState::free_stale,
                        .now = tick.load(std::memory_order_relaxed),
                        .minimum_age = static_cast<std::uint16_t>(settings.purge_ms / 16),
                        .lone_age = 2'000 / 16};
  PageRun run;
  if (totals.stale != 0 && reserve + totals.stale > kept) {
    run = pages.take_old(purge);
  }
  if (run.length == 0) {
    // Less than 256 KiB was taken in any round of late.
    const bool idle = past_demand_ < PageHeap::reserve_run;
    const std::uint64_t scattered = std::max<std::uint64_t>(pages_per_chunk / 2, totals.used / 32) / (idle ? 4 : 1);
    const std::uint64_t unneeded = never_needed(totals.used);
    const bool old = unneeded >= PageHeap::reserve_run;
    const bool too_much = reserve > kept + pages_per_chunk;
    const bool more_than_needed = (idle || old) && reserve > kept + PageHeap::reserve_run;
    if (too_much || more_than_needed || old || totals.ready > reserve + scattered) {
      purge.state = PageState::free_ready;
      if (too_much && std::min(lowest_before_.reserve, lowest_now_.reserve) > kept + pages_per_chunk) {
        purge.minimum_age = 0;
      } else if (!too_much) {
        purge.longest = more_than_needed ? static_cast<std::uint32_t>(reserve - kept) : PageHeap::reserve_run;
        if (old) {
          purge.longest = static_cast<std::uint32_t>(std::min<std::uint64_t>(purge.longest, unneeded));
          purge.minimum_age = 0;
        }
      }
      run = pages.take_old(purge);
      for (PageHeap::Lowest* lowest : {&lowest_before_, &lowest_now_}) {
        lowest->ready -= std::min<std::uint64_t>(lowest->ready, purge.taken);
      }
    }
  }
  if (purge.more_to_come || run.length != 0) {
    purge_is_due_.store(true, std::memory_order_relaxed);
  }
  if (run.length == 0) {
    return false;
  }
  give_back(run.first, run.length);
  counts.purged.fetch_add(run.length, std::memory_order_relaxed);
  pages.free(run.first, PageState::free_raw, 0);
  return true;
}

// The tables of a freed level, once enough has gone back and nothing more waits to. At most eight runs a round, whole
// ones: what could not be had of one for a moment would not be merged with what was swept of it before.
void ProcessHeap::give_tables_back() {
  constexpr std::uint64_t worth_while = 8 * pages_per_chunk;
  constexpr int most_runs = 8;
  const std::uint64_t purged = counts.purged.load(std::memory_order_relaxed);
  if (tables_epoch_ == 0) {
    if (purged - tables_at_ < worth_while) {
      return;
    }
    tables_at_ = purged;
    tables_epoch_ = static_cast<std::uint16_t>(tick.load(std::memory_order_relaxed) | 1u);
  }
  bool done = false;
  Bound<Loop::runs_for_tables> runs(most_runs);
  for (int looks = 0; !done && looks < most_runs; ++looks) {
    runs.turn();
    PageRun part = pages.take_raw(tables_epoch_, &done);
    // Each but the last of a run is most_swept pages, and the next lies behind it.
    Bound<Loop::parts_of_raw_run> parts([] { return (region.bytes >> page_shift) / PageHeap::most_swept + 1; });
    while (part.length != 0) {
      parts.turn();
      discard_tables(part.first, part.length);
      const PageRun next = pages.take_raw_behind(part);
      pages.free(part.first, PageState::free_raw, tables_epoch_);
      part = next;
    }
  }
  if (done) {
    tables_epoch_ = 0;
  } else {
    purge_is_due_.store(true, std::memory_order_relaxed);
  }
}

// Heaps that wait for a thread get no slow paths that would adopt their remote frees: do it for them, a few at a time.
// True where some are left.
bool ProcessHeap::sweep_parked() {
  const std::lock_guard hold(sweep_lock);
  constexpr std::uint32_t most_heaps_swept = 16;
  constexpr std::uint32_t most_adopted = 64;
  constexpr std::uint32_t most_drained = 16;
  constexpr std::uint16_t parked_before_settling = 8;  // ticks: an eighth of a second
  const std::uint16_t now = tick.load(std::memory_order_relaxed);
  bool settled = false;
  bool more = depot.drain(now, false, most_drained);
  Bound<Loop::heaps_swept> heaps(most_heaps_swept);
  for (std::uint32_t swept = 0; swept < most_heaps_swept; ++swept) {
    heaps.turn();
    const std::uint32_t index = parked_.take_to_sweep(heap_link);
    if (index == 0) {
      free_blocks_of_parked(now);
      break;
    }
    ThreadHeap* const heap = heap_at(index);
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
    parked_.park(index, heap_link);
  }
  keep_spare_heaps();
  return more || settled;
}

// At the end of a turn of the sweep. A block whose thread has ended, and which the others hand to one another by way of
// the depot, each frame anew, is never free to its slab, and may well be all that a freed level has left in it: 7 MiB of
// slabs were held so for 0.5 MiB of blocks. So while parked heaps have slabs the depot is emptied each half second, and
// more and more seldom where they lose none by it.
void ProcessHeap::free_blocks_of_parked(std::uint16_t now) {
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

bool ProcessHeap::maintain(std::uint64_t budget_ns) {
  if (maintaining_.exchange(true, std::memory_order_acquire)) {
    return false;
  }
  const bool more_to_do = maintain_alone(budget_ns);
  maintaining_.store(false, std::memory_order_release);
  return more_to_do;
}

void ProcessHeap::forget_maintenance() {
  maintaining_.store(false, std::memory_order_relaxed);
  pages.abandon_work(tick.load(std::memory_order_relaxed));
}

bool ProcessHeap::maintain_alone(std::uint64_t budget_ns) {
  const std::uint64_t started = base::monotonic_ns();
  const auto within_budget = [&] { return base::monotonic_ns() - started < budget_ns; };
  tick.store(static_cast<std::uint16_t>(started / 16'000'000), std::memory_order_relaxed);
  follow_demand(started);
  bool exhausted = false;
  while (!exhausted && pages.reserve_pages() < reserve_target() && within_budget()) {
    exhausted = !populate_chunk();
  }
  exhausted_.store(exhausted, std::memory_order_relaxed);
  for (const std::uint32_t granules : slab_granules) {
    while (ready_of(granules).count.load(std::memory_order_relaxed) < ready_target(granules) && within_budget() &&
           cut_ready_slab(granules)) {
    }
  }
  if (taken_lately() == 0) {
    drop_surplus_slabs();
  }
  const bool swept = sweep_parked();
  // Four chunks a round: 8 MiB a millisecond gives a freed level of 2 GiB back within its two seconds, and leaves room.
  // A look that finds none is repeated once: a look sees a few lists only.
  purge_is_due_.store(false, std::memory_order_relaxed);
  constexpr int most_purged = 4;
  int found = 0;
  Bound<Loop::looks_for_purge> purges(most_purged + 1);
  for (int looks = 0; looks < found + 2 && found < most_purged && within_budget(); ++looks) {
    purges.turn();
    found += purge_chunk() ? 1 : 0;
  }
  if (found == 0) {
    give_tables_back();
  }
  pages.take_lowest();
  reserve_left_ = pages.reserve_pages();
  slabs_left_ = ready_granules();
  return swept || found != 0 || !within_budget();
}

bool ProcessHeap::prefault(std::size_t bytes) {
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
    if (!populate_chunk()) {
      return false;
    }
  }
  return true;
}

std::size_t ProcessHeap::trim() {
  std::size_t given = 0;
  {
    const std::lock_guard hold(sweep_lock);
    depot.drain(tick.load(std::memory_order_relaxed), true, magazine_count);
  }
  // Each turn takes as much at least; what others free meanwhile may stay.
  const PageHeap::Totals free = pages.totals();
  std::uint64_t left = (free.stale + free.ready) / PageHeap::least_taken;
  Bound<Loop::runs_trimmed> runs(left);
  // Each state twice: the janitor may have left off in the middle of the lists.
  for (const PageState state :
       {PageState::free_stale, PageState::free_stale, PageState::free_ready, PageState::free_ready}) {
    for (; left != 0; --left) {
      PageHeap::Purge purge{.state = state};
      const PageRun run = pages.take_old(purge);
      if (run.length == 0) {
        break;
      }
      runs.turn();
      give_back(run.first, run.length);
      counts.purged.fetch_add(run.length, std::memory_order_relaxed);
      given += std::size_t{run.length} << page_shift;
      pages.free(run.first, PageState::free_raw, 0);
    }
  }
  return given;
}

}  // namespace blockyard::heap
