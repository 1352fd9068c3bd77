// The slow paths of a pool: which slab comes next, what becomes of one that is full or empty, when pages come and go.
//
// O(1) for each slab that runs out or empties. One call handles at most 16 KiB or 16 blocks of a chain. reset and trim
// are O(slabs). The operating system is called when a page is taken (one madvise, two with huge pages) or given back
// (one or two), and when the window opens.
#include "block/pool.hpp"

#include <algorithm>
#include <mutex>
#include <new>

#include "base/bits.hpp"
#include "block/pool_parts.hpp"
#include "block/remote_frees.hpp"
#include "block/watch.hpp"
#include "blockyard/static_block_allocator.hpp"

namespace blockyard::block {
namespace {

// A page is at most 4 MiB: larger ones are wholly free less often and make nothing faster.
constexpr unsigned page_order_cap = 22 - slab_shift;
// Pages of 2 MiB and more use huge pages, once the pool holds 1 MiB: what they may waste is then little more than what
// the pool holds already (docs/design/containers.md).
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
constexpr std::size_t huge_from_bytes = std::size_t{1} << 20;  // not before, even if the first page is large

constinit Pool* store = nullptr;  // pools that serve nobody; guarded by `world`

void count_busy(Pool* pool, Index page) {
  ++pool->busy_slabs;
  if (slice(page).busy++ == 0) {
    pool->free_page_bytes -= page_bytes(page);
  }
}

void make_current(Pool* pool, Slab* record) {
  slice(index_of(record)).place = Place::current;
  *pool->current = record;
}

// The current slab has no block left. True if other threads have freed some of its blocks.
bool current_refilled(Pool* pool) {
  Slab* const record = *pool->current;
  if (record == &by_block_no_slab) {
    return false;
  }
  if (record == &pool->loose) {
    const std::size_t used = pool->loose.excess;
    pool->loose.excess = 0;
    count_chained(pool, used);
    if (pool->loose_rest != 0) {
      fill_loose(pool);
      return true;
    }
    *pool->current = &by_block_no_slab;
    return false;
  }
  if (pool->thread != nullptr) {
    if (const RemoteList list = remote_take(record->remote); list.head != 0) {
      slab_receive(pool, record, list);
      return true;
    }
  }
  *pool->current = &by_block_no_slab;
  slab_full(pool, record);
  return false;
}

// Prefetches a slab with scattered free blocks. Otherwise each block would be a cache miss that the next one waits for.
void fetch_blocks(const Pool* pool, const Slab* record) {
  if (slab_live(*record) > pool->reopen) {
    return;  // few free blocks
  }
  const std::byte* const end = slab_start(record) + cut_bytes(pool, record);
  for (const std::byte* line = slab_start(record); line < end; line += 64) {
    __builtin_prefetch(line, 1);
  }
}

bool take_partial(Pool* pool) {
  const Index index = pool->partial;
  if (index == 0) {
    return false;
  }
  list_remove(pool->partial, index);
  Slab& record = slab(index);
  fetch_blocks(pool, &record);
  make_current(pool, &record);
  return true;
}

bool take_empty(Pool* pool) {
  const Index index = pool->empty;
  if (index == 0) {
    return false;
  }
  list_remove(pool->empty, index);
  count_busy(pool, slice(index).page);
  make_current(pool, &slab(index));
  return true;
}

bool cut_slab(Pool* pool) {
  const Index page = pool->cutting;
  if (page == 0) {
    return false;
  }
  Slice& first = slice(page);
  const Index index = first.uncut;
  first.uncut += slab_step(pool);
  if (first.uncut == page_end(page)) {
    pool->cutting = 0;
  }
  Slab* const record = new (&slab(index)) Slab;
  rewind(pool, record);
  record->pool.store(pool, std::memory_order_release);
  record->owner.store(pool->thread, std::memory_order_relaxed);
  slice(index).page = page;
  count_busy(pool, page);
  make_current(pool, record);
  return true;
}

bool take_page(Pool* pool) {
  const unsigned least = pool->shift - slab_shift;
  unsigned order = std::max<unsigned>(pool->next_order, least);
  const bool huge = pool->held_bytes >= huge_from_bytes && (slice_bytes << order) >= huge_page_bytes;
  const bool near = pool->stride % 8 != 0;
  Index page = window_take(order, huge, near);
  while (page == 0 && order > least) {
    page = window_take(--order, false, near);
  }
  if (page == 0) {
    return false;
  }
  Slice& first = slice(page);
  first.order = static_cast<std::uint8_t>(order);
  first.huge = huge;
  first.busy = 0;
  first.uncut = page;
  page_link(pool, page);
  pool->free_page_bytes += page_bytes(page);
  pool->cutting = page;
  pool->next_order = static_cast<std::uint8_t>(std::min(order + 1, std::max(page_order_cap, least)));
  return true;
}

// Makes a slab with free blocks the current one. False when memory is exhausted.
bool refill(Pool* pool) {
  note_peak(pool);
  if (current_refilled(pool)) {
    return true;
  }
  if (pool->thread != nullptr) {
    pool_drain_inbox(pool);
  }
  if (take_partial(pool) || take_chain(pool) || take_empty(pool) || cut_slab(pool)) {
    return true;
  }
  if (pool->thread != nullptr && static_adopt(pool)) {
    return take_partial(pool) || take_empty(pool) || cut_slab(pool);
  }
  return take_page(pool) && cut_slab(pool);
}

}  // namespace

Pool* pool_create(std::size_t stride, Slab** current) {
  if (!window_open()) {
    return nullptr;
  }
  void* memory = nullptr;
  {
    const std::lock_guard lock(world);
    if (store != nullptr) {
      memory = store;
      store = store->next_free;
    }
  }
  if (memory == nullptr && (memory = window_record(sizeof(Pool))) == nullptr) {
    return nullptr;
  }
  Pool* const pool = new (memory) Pool;
  pool->current = current;
  pool->stride = static_cast<std::uint32_t>(stride);
  pool->shift = slab_shift_of(stride);
  pool->capacity = static_cast<std::uint32_t>((std::size_t{1} << pool->shift) / stride);
  pool->wake = pool->capacity / 8;
  pool->reopen = pool->capacity - pool->wake;
  return pool;
}

void pool_destroy(Pool* pool) {
  watch_pool_ends(pool);
  for (Index page = pool->pages; page != 0;) {
    const Slice& first = slice(page);
    const Index next = first.next;
    for (Index index = page; index != first.uncut; index += slab_step(pool)) {
      slice(index).place = Place::unused;
    }
    window_give(page, first.order, first.huge);
    page = next;
  }
  const std::lock_guard lock(world);
  pool->next_free = store;
  store = pool;
}

void* pool_allocate_slow(Pool* pool) {
  do {
    if (void* const block = slab_take(*pool->current, pool->stride); block != nullptr) {
      return block;
    }
  } while (refill(pool));
  return nullptr;
}

void pool_free_slow(Pool* pool, Slab* record) {
  if (record->floor != 0) {
    if (pool->thread != nullptr) {
      remote_disarm(record->remote);
    }
    slab_reopen(pool, record);
    return;
  }
  slab_emptied(pool, record);
}

void pool_free(Pool* pool, void* block) {
  Slab* const record = slab_of(block, slab_mask_of(pool->shift));
  if (!slab_put(record, block, pool->stride)) {
    pool_free_slow(pool, record);
  }
}

void pool_reset(Pool* pool) {
  note_peak(pool);
  *pool->current = &by_block_no_slab;
  pool->chain = nullptr;
  pool->chained_blocks = 0;
  end_loose(pool);
  pool->partial = 0;
  pool->empty = 0;
  pool->busy_slabs = 0;
  pool->free_page_bytes = std::size_t{pool->held_bytes};
  for (Index page = pool->pages; page != 0;) {
    Slice& first = slice(page);
    const Index next = first.next;
    first.busy = 0;
    // From the last to the first, so that the list hands them out in the order of their addresses.
    for (Index index = first.uncut; index != page;) {
      index -= slab_step(pool);
      Slab& record = slab(index);
      rewind(pool, &record);
      record.floor = 0;
      record.excess = 0;
      slice(index).place = Place::empty;
      list_push(pool->empty, index);
    }
    if (keeps_too_much(pool)) {
      page_release(pool, page);
    }
    page = next;
  }
}

namespace {

// Takes in what other threads have freed, announced or not.
void collect_all(Pool* pool) {
  pool_drain_inbox(pool);
  for (Index page = pool->pages; page != 0; page = slice(page).next) {
    for (Index index = page; index != slice(page).uncut; index += slab_step(pool)) {
      Slab& record = slab(index);
      if (const RemoteList list = remote_take(record.remote); list.head != 0) {
        remote_disarm(record.remote);
        slab_receive(pool, &record, list);
      }
    }
  }
}

// An empty current slab would keep its page.
void put_current_aside(Pool* pool) {
  Slab* const record = *pool->current;
  if (is_real(pool, record) && slab_live(*record) == 0) {
    *pool->current = &by_block_no_slab;
    slice(index_of(record)).place = Place::partial;
    list_push(pool->partial, index_of(record));
    slab_emptied(pool, record);
  }
}

}  // namespace

void pool_trim(Pool* pool) {
  pool->holds_pages = true;
  free_chains(pool);
  if (pool->thread != nullptr) {
    collect_all(pool);
  }
  put_current_aside(pool);
  pool->holds_pages = false;
  for (Index page = pool->pages; page != 0;) {
    const Index next = slice(page).next;
    if (slice(page).busy == 0) {
      page_release(pool, page);
    }
    page = next;
  }
  pool->peak_held_bytes = pool->held_bytes;
}

void pool_drain_inbox(Pool* pool) {
  for (Index index = inbox_take(pool->inbox); index != 0;) {
    Slice& info = slice(index);
    const Index next = info.inbox_next.load(std::memory_order_relaxed);
    Slab& record = slab(index);
    const RemoteList list = remote_acknowledge(record.remote);
    if (list.head != 0) {
      slab_receive(pool, &record, list);
    } else if (info.place == Place::full) {
      slab_full(pool, &record);  // its blocks were collected before, and all are in use again: arm it again
    }
    index = next;
  }
}

void pool_add_statistics(const Pool* pool, by_block_statistics* sum) {
  note_peak(const_cast<Pool*>(pool));
  std::size_t live = 0;
  for (Index page = pool->pages; page != 0; page = slice(page).next) {
    for (Index index = page; index != slice(page).uncut; index += slab_step(pool)) {
      live += slab_live(slab(index));
    }
  }
  std::size_t waiting = pool->chained_blocks;
  if (*pool->current == &pool->loose) {
    waiting -= pool->loose.excess;
  }
  live -= waiting + watch_waiting(pool);
  sum->live_blocks += live;
  sum->live_bytes += live * pool->stride;
  sum->peak_blocks += pool->peak_cut_bytes / pool->stride;
  sum->pages += pool->page_count;
  sum->held_bytes += pool->held_bytes;
  sum->free_page_bytes += pool->free_page_bytes;
}

}  // namespace blockyard::block
