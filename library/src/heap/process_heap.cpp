#include "heap/process_heap.hpp"

#include <pthread.h>

#include <algorithm>
#include <new>

#include "base/pages.hpp"
#include "heap/bound.hpp"
#include "heap/depot.hpp"
#include "heap/huge_chunks.hpp"
#include "heap/injected_failure.hpp"
#include "heap/janitor.hpp"
#include "heap/maintenance.hpp"
#include "heap/secret.hpp"

namespace blockyard::heap {

constinit ProcessHeap process_heap;

namespace {

pthread_key_t exit_key;

auto heap_link(std::uint32_t index) -> Atomic<std::uint32_t>& { return process_heap.heap_at(index)->parked_next; }

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
      maintenance.make_first_reserve();
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
  park(heap);
}

void ProcessHeap::park(ThreadHeap* heap) { parked_.park(heap->index, heap_link); }

ThreadHeap* ProcessHeap::take_to_sweep() {
  const std::uint32_t index = parked_.take_to_sweep(heap_link);
  return index != 0 ? heap_at(index) : nullptr;
}

// Nobody is woken for a slab that was taken from a full reserve: a wake-up is a system call of 3 to 10 us.
std::uint32_t ProcessHeap::take_slab(std::uint32_t granules) {
  const auto length = static_cast<std::uint32_t>(granules * pages_per_granule);
  if (const std::uint32_t granule = ready_slabs.take(granules); granule != 0) {
    slab_pages_taken.fetch_add(length, std::memory_order_relaxed);
    return granule;
  }
  const PageRun run = pages.allocate(length, pages_per_granule, Prefer::ready, PageState::used_slab);
  if (run.length == 0) {
    return 0;
  }
  slab_pages_taken.fetch_add(length, std::memory_order_relaxed);
  if (run.from != PageState::free_ready) {
    counts.ready_misses_slab.fetch_add(1, std::memory_order_relaxed);
    populate_tables(run.first, run.length);
    touch(run.first, length, counts.populated_by_program);
  }
  if (demand.reserve_is_low(pages.reserve_pages())) {
    wake_janitor();
  }
  return granule_of_page(run.first);
}

void ProcessHeap::give_slab(std::uint32_t granule, std::uint32_t granules) {
  // Twice the target: what a program frees at once is what it may want at once, without the page heap's lock.
  if (ready_slabs.count(granules) < 2 * ReadySlabs::target(granules)) {
    ready_slabs.give(granule, granules);
    return;
  }
  pages.free(page_of_granule(granule), PageState::free_ready);
}

// One write a page: populating by touching takes only the lock of the mapping, while the populate calls of the kernel
// hold that of the address space and stall every other thread's mmap (measured: 16 ms at p99.9 against 0.05 to 0.08
// ms).
void ProcessHeap::touch(std::uint32_t first_page, std::uint32_t length, Atomic<std::uint64_t>& counter) {
  // The program: a block that may be populated at all; else what take_free found, or a slab.
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
    if (demand.reserve_is_low(pages.reserve_pages())) {
      wake_janitor();
    }
  }
  if (owner != nullptr) {
    const std::lock_guard hold(pages.lock());
    tag.flags |= page_owned;
    tag.previous = 0;
    tag.next = owner->blocks;
    tag.heap = static_cast<std::uint16_t>(owner->index);
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
      heap_at(tag.heap)->blocks = tag.next;
    }
    if (tag.next != 0) {
      region.pages[tag.next].previous = tag.previous;
    }
  }
  const bool purgeable = tag.length >= pages_per_chunk;
  pages.free(first, populated ? PageState::free_ready : PageState::free_stale);
  if (purgeable) {
    want_janitor();  // it gives back what is not wanted again
  }
}

}  // namespace blockyard::heap
