// The slow paths of a pool: which slab comes next, what becomes of one that is full or empty, when pages come and go.
#include "block/pool.hpp"

#include <algorithm>
#include <mutex>
#include <new>

#include "base/bits.hpp"
#include "block/remote_frees.hpp"
#include "block/watch.hpp"
#include "blockyard/static_block_allocator.hpp"

namespace blockyard::block {
namespace {

// A page is at most 4 MiB: larger ones made nothing faster, and are wholly free less often.
constexpr unsigned page_order_cap = 22 - slab_shift;
// Huge pages from the first page of such a size on: what they may waste (up to 2 MiB) is then no more than what the
// pool holds already. Finding the physical page costs more than the access itself, twice so under a hypervisor: finds in an
// ordered map of a million took a quarter less with this than when huge pages began at 8 MiB.
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
constexpr std::size_t huge_from_bytes = std::size_t{1} << 20;  // for pools whose first page is large already
// A pool keeps this much free without further ado.
constexpr std::size_t least_kept_bytes = std::size_t{256} << 10;

constinit Pool* store = nullptr;  // pools that serve nobody; guarded by `world`

std::size_t page_bytes(Index page) { return granule_bytes << granule(page).order; }
Index page_end(Index page) { return page + (Index{1} << granule(page).order); }
Index slab_step(const Pool* pool) { return Index{1} << (pool->shift - slab_shift); }
std::byte* slab_start(const Slab* record) { return address_of(index_of(record)); }
bool is_real(const Pool* pool, const Slab* record) { return record != &by_block_no_slab && record != &pool->loose; }

// --- lists of slabs ---

void list_push(Index& head, Index index) {
  Slab& record = slab(index);
  record.previous = 0;
  record.next = head;
  if (head != 0) {
    slab(head).previous = index;
  }
  head = index;
}

void list_remove(Index& head, Index index) {
  Slab& record = slab(index);
  (record.previous != 0 ? slab(record.previous).next : head) = record.next;
  if (record.next != 0) {
    slab(record.next).previous = record.previous;
  }
}

void page_link(Pool* pool, Index page) {
  Granule& first = granule(page);
  first.previous = 0;
  first.next = pool->pages;
  if (first.next != 0) {
    granule(first.next).previous = page;
  }
  pool->pages = page;
  pool->page_count += 1;
  pool->held_bytes += page_bytes(page);
  pool->peak_held_bytes = std::max<std::size_t>(pool->peak_held_bytes, pool->held_bytes);
}

void page_unlink(Pool* pool, Index page) {
  Granule& first = granule(page);
  (first.previous != 0 ? granule(first.previous).next : pool->pages) = first.next;
  if (first.next != 0) {
    granule(first.next).previous = first.previous;
  }
  pool->page_count -= 1;
  pool->held_bytes -= page_bytes(page);
}

// --- slabs and pages, their ways ---

std::byte* cut_end(const Pool* pool, const Slab* record) {
  return slab_start(record) + std::size_t{pool->capacity} * pool->stride;
}

// Bytes of a slab below which every live block lies, free or not: all of it where a run of freed blocks is cut anew.
std::size_t cut_bytes(const Pool* pool, const Slab* record) {
  const std::byte* const high = record->end == cut_end(pool, record) ? record->bump : cut_end(pool, record);
  return static_cast<std::size_t>(high - slab_start(record));
}

// In bytes: a division here would show in programs that take and give back a single block over and over.
void note_peak(Pool* pool) {
  const std::size_t slab_bytes = std::size_t{pool->capacity} * pool->stride;
  const std::size_t busy = pool->busy_slabs;
  if (busy * slab_bytes <= pool->peak_cut_bytes) {
    return;
  }
  const Slab* const current = *pool->current;
  const std::size_t cut = is_real(pool, current) ? cut_bytes(pool, current) : slab_bytes;
  pool->peak_cut_bytes = std::max<std::size_t>(pool->peak_cut_bytes, (busy - 1) * slab_bytes + cut);
}

void rewind(const Pool* pool, Slab* record) {
  record->free = nullptr;
  record->bump = slab_start(record);
  record->end = cut_end(pool, record);
}

void count_busy(Pool* pool, Index page) {
  ++pool->busy_slabs;
  if (granule(page).busy++ == 0) {
    pool->free_page_bytes -= page_bytes(page);
  }
}

bool page_has_announced_slab(const Pool* pool, Index page) {
  for (Index index = page; index != granule(page).uncut; index += slab_step(pool)) {
    if (remote_is_announced(slab(index).remote)) {
      return true;
    }
  }
  return false;
}

// Gives a page without blocks back. A slab on its way to an inbox keeps its page: then nothing happens.
bool page_release(Pool* pool, Index page) {
  Granule& first = granule(page);
  if (page_has_announced_slab(pool, page)) {
    return false;
  }
  for (Index index = page; index != first.uncut; index += slab_step(pool)) {
    list_remove(pool->empty, index);
    granule(index).place = Place::unused;
    slab(index).owner.store(nullptr, std::memory_order_relaxed);
  }
  if (pool->cutting == page) {
    pool->cutting = 0;
  }
  page_unlink(pool, page);
  pool->free_page_bytes -= page_bytes(page);
  window_give(page, first.order, first.huge);
  return true;
}

bool keeps_too_much(const Pool* pool) {
  return !pool->holds_pages && pool->free_page_bytes > std::max(pool->peak_held_bytes / 2, least_kept_bytes);
}

// The last block of a slab has come back: bump order again.
void slab_emptied(Pool* pool, Slab* record) {
  const Index index = index_of(record);
  Granule& info = granule(index);
  note_peak(pool);
  rewind(pool, record);
  if (info.place == Place::current) {
    return;
  }
  list_remove(pool->partial, index);
  info.place = Place::empty;
  list_push(pool->empty, index);
  --pool->busy_slabs;
  Granule& page = granule(info.page);
  if (--page.busy == 0) {
    pool->free_page_bytes += page_bytes(info.page);
    if (keeps_too_much(pool)) {
      page_release(pool, info.page);
    }
  }
}

// A full slab has room again: back among those with room.
void slab_reopen(Pool* pool, Slab* record) {
  record->excess = slab_live(*record);
  record->floor = 0;
  const Index index = index_of(record);
  granule(index).place = Place::partial;
  list_push(pool->partial, index);
}

// Joins remotely freed blocks to the slab's own list. O(the shorter list as a rule): the own list is mostly empty.
void slab_collect(Slab* record, const RemoteList& list) {
  if (list.head == 0) {
    return;
  }
  void* const first = slab_link_to(index_of(record), list.head);
  if (record->free != nullptr) {
    void* last = first;
    while (void* const next = link_of(last)) {
      last = next;
    }
    set_link(last, record->free);
  }
  record->free = first;
}

// Takes remotely freed blocks into a slab that is full, partial or current.
void slab_receive(Pool* pool, Slab* record, const RemoteList& list) {
  slab_collect(record, list);
  const std::uint32_t live = slab_live(*record) - list.count;
  const Place place = granule(index_of(record)).place;
  if (place == Place::full) {
    record->floor = live;
    record->excess = 0;
    slab_reopen(pool, record);
  } else {
    record->excess = live;
  }
  if (live == 0 && place != Place::empty) {
    slab_emptied(pool, record);
  }
}

// Every block of the slab is live, or on a list that is too short to be worth a look: out of sight until enough come
// back.
void slab_full(Pool* pool, Slab* record) {
  granule(index_of(record)).place = Place::full;
  const std::uint32_t live = slab_live(*record);
  if (pool->watch != nullptr) {
    return;  // its counts stay as the watch set them
  }
  if (record->bump == record->end) {
    record->bump = record->end = slab_start(record);  // blocks freed in order from here on make a run (slab_put)
  }
  record->floor = pool->reopen;
  record->excess = live - pool->reopen;
  if (pool->thread == nullptr) {
    return;
  }
  if (!remote_arm(record->remote, pool->wake)) {
    if (const RemoteList list = remote_take(record->remote); list.head != 0) {
      slab_receive(pool, record, list);
    }
  }
}

void make_current(Pool* pool, Slab* record) {
  granule(index_of(record)).place = Place::current;
  *pool->current = record;
}

// Blocks of chains that are chained no longer.
void count_chained(Pool* pool, std::size_t gone) {
  if (pool->thread != nullptr) {
    static_chain_used(pool->slot, gone);
  } else {
    pool->chained_blocks -= gone;
  }
}

// Hands a chain's next blocks to the fast path. Mostly they lie one after the other, as they were cut: then they are
// cut anew, which waits for no link. Bounded, so that it is O(1).
void fill_loose(Pool* pool) {
  constexpr std::size_t worth_cutting = 16;
  constexpr std::size_t longest_list = 64;
  // Still in the first-level cache when they are handed out. Runs of 3 KiB made a list's second filling 6 % slower.
  constexpr std::size_t run_bytes = std::size_t{16} << 10;
  const std::size_t stride = pool->stride;
  const std::size_t longest_run = std::max(run_bytes / stride, worth_cutting);
  const unsigned shift = near_shift_of(stride);
  const std::uint32_t step = static_cast<std::uint32_t>(stride >> shift);
  Slab& loose = pool->loose;
  std::byte* const first = static_cast<std::byte*>(near_target(pool->loose_rest, shift));
  std::uint32_t adjacent = pool->loose_rest + step;
  std::uint32_t next = chain_link(first, 0);
  std::size_t run = 1;
  for (; next == adjacent && run < longest_run; ++run) {
    next = chain_link(first + run * stride, 0);
    adjacent += step;
  }
  if (run >= worth_cutting) {
    loose.bump = first;
    loose.end = first + run * stride;
  } else {
    // Scattered: a list.
    void* last = first;
    next = chain_link(first, 0);
    for (std::size_t count = 1; next != 0 && count < longest_list; ++count) {
      void* const following = near_target(next, shift);
      set_link(last, following);
      last = following;
      next = chain_link(last, 0);
    }
    set_link(last, nullptr);
    loose.free = first;
  }
  pool->loose_rest = next;
}

// The current slab has nothing left. True when it has, after all, by way of other threads.
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

// A slab with scattered free blocks is about to be used up, link by link, each a cache miss that the next waits for: a
// million blocks, half of them freed at random, took 103 ns each to be taken again. Asked for beforehand and in order,
// the lines come together.
void fetch_blocks(const Pool* pool, const Slab* record) {
  if (slab_live(*record) > pool->reopen) {
    return;  // a handful of blocks
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

bool take_chain(Pool* pool) {
  void* first = nullptr;
  if (pool->thread != nullptr) {
    first = static_chain_take(pool->slot);
  } else if (pool->chain != nullptr) {
    first = pool->chain;
    pool->chain = next_chain(first, pool->stride);
  }
  if (first == nullptr) {
    return false;
  }
  pool->loose_rest = near_link(first, near_shift_of(pool->stride));
  fill_loose(pool);
  *pool->current = &pool->loose;
  return true;
}

bool take_empty(Pool* pool) {
  const Index index = pool->empty;
  if (index == 0) {
    return false;
  }
  list_remove(pool->empty, index);
  count_busy(pool, granule(index).page);
  make_current(pool, &slab(index));
  return true;
}

bool cut_slab(Pool* pool) {
  const Index page = pool->cutting;
  if (page == 0) {
    return false;
  }
  Granule& first = granule(page);
  const Index index = first.uncut;
  first.uncut += slab_step(pool);
  if (first.uncut == page_end(page)) {
    pool->cutting = 0;
  }
  Slab* const record = new (&slab(index)) Slab;
  rewind(pool, record);
  record->pool.store(pool, std::memory_order_release);
  record->owner.store(pool->thread, std::memory_order_relaxed);
  granule(index).page = page;
  count_busy(pool, page);
  make_current(pool, record);
  return true;
}

bool take_page(Pool* pool) {
  const unsigned least = pool->shift - slab_shift;
  unsigned order = std::max<unsigned>(pool->next_order, least);
  const bool huge = pool->held_bytes >= huge_from_bytes && (granule_bytes << order) >= huge_page_bytes;
  const bool near = pool->stride % 8 != 0;
  Index page = window_take(order, huge, near);
  while (page == 0 && order > least) {
    page = window_take(--order, false, near);
  }
  if (page == 0) {
    return false;
  }
  Granule& first = granule(page);
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

// Makes some slab with room current; false when memory is exhausted.
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
    const Granule& first = granule(page);
    const Index next = first.next;
    for (Index index = page; index != first.uncut; index += slab_step(pool)) {
      granule(index).place = Place::unused;
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
  Slab* const record = slab_of(block, pool->shift);
  if (!slab_put(record, block, pool->stride)) {
    pool_free_slow(pool, record);
  }
}

void pool_free_chain(Pool* pool, void* first, void* last, std::size_t count) {
  set_chain_next(last, nullptr, pool->stride);
  set_next_chain(first, pool->chain, pool->stride);
  pool->chain = first;
  pool->chained_blocks += count;
}

namespace {

void end_loose(Pool* pool) {
  pool->loose.free = nullptr;
  pool->loose.bump = pool->loose.end = nullptr;
  pool->loose.excess = 0;
  pool->loose_rest = 0;
}

}  // namespace

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
    Granule& first = granule(page);
    const Index next = first.next;
    first.busy = 0;
    // From the last to the first, so that the list hands them out in address order.
    for (Index index = first.uncut; index != page;) {
      index -= slab_step(pool);
      Slab& record = slab(index);
      rewind(pool, &record);
      record.floor = 0;
      record.excess = 0;
      granule(index).place = Place::empty;
      list_push(pool->empty, index);
    }
    if (keeps_too_much(pool)) {
      page_release(pool, page);
    }
    page = next;
  }
}

namespace {

// So that its slab notices. Blocks of a static chain may be any thread's.
void free_chained(Pool* pool, void* block) {
  Slab* const record = slab_of(block, pool->shift);
  if (record->pool.load(std::memory_order_relaxed) == pool) {
    pool_free(pool, block);
  } else {
    by_static_block_free_remote(block, record);
  }
}

// One by one; how many.
std::size_t free_whole_chain(Pool* pool, void* block) {
  std::size_t count = 0;
  for (; block != nullptr; ++count) {
    void* const next = chain_next(block, pool->stride);
    free_chained(pool, block);
    block = next;
  }
  return count;
}

// What `loose` holds, and what it would have held next; how many.
std::size_t free_loose(Pool* pool) {
  Slab& loose = pool->loose;
  std::size_t count = 0;
  for (void* block = loose.free; block != nullptr; ++count) {
    void* const next = link_of(block);
    free_chained(pool, block);
    block = next;
  }
  for (std::byte* block = loose.bump; block != loose.end; block += pool->stride, ++count) {
    free_chained(pool, block);
  }
  void* const rest = pool->loose_rest == 0 ? nullptr : near_target(pool->loose_rest, near_shift_of(pool->stride));
  return count + free_whole_chain(pool, rest);
}

// What is left of the chain in use, and, of a pool that is not static, all others.
void free_chains(Pool* pool) {
  if (*pool->current == &pool->loose) {
    *pool->current = &by_block_no_slab;
    const std::size_t used = pool->loose.excess;
    count_chained(pool, used + free_loose(pool));
    end_loose(pool);
  }
  while (void* const first = pool->chain) {
    pool->chain = next_chain(first, pool->stride);
    count_chained(pool, free_whole_chain(pool, first));
  }
}

// What other threads have freed, announced or not.
void collect_all(Pool* pool) {
  pool_drain_inbox(pool);
  for (Index page = pool->pages; page != 0; page = granule(page).next) {
    for (Index index = page; index != granule(page).uncut; index += slab_step(pool)) {
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
    granule(index_of(record)).place = Place::partial;
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
    const Index next = granule(page).next;
    if (granule(page).busy == 0) {
      page_release(pool, page);
    }
    page = next;
  }
  pool->peak_held_bytes = pool->held_bytes;
}

void pool_drain_inbox(Pool* pool) {
  for (Index index = inbox_take(pool->inbox); index != 0;) {
    Granule& info = granule(index);
    const Index next = info.inbox_next.load(std::memory_order_relaxed);
    Slab& record = slab(index);
    const RemoteList list = remote_acknowledge(record.remote);
    if (list.head != 0) {
      slab_receive(pool, &record, list);
    } else if (info.place == Place::full) {
      slab_full(pool, &record);  // its blocks were collected before and are all in use again: armed anew
    }
    index = next;
  }
}

namespace {

// Takes the word of each full slab back to idle, so that the page may change hands. False, with nothing changed, when
// one is announced: its entry lies in the old pool's inbox.
bool page_disarm(Pool* pool, Index page) {
  const Index end = granule(page).uncut;
  for (Index index = page; index != end; index += slab_step(pool)) {
    remote_disarm(slab(index).remote);
  }
  return !page_has_announced_slab(pool, page);
}

void page_rearm(Pool* pool, Index page) {
  const Index end = granule(page).uncut;
  for (Index index = page; index != end; index += slab_step(pool)) {
    if (granule(index).place == Place::full && !remote_is_announced(slab(index).remote)) {
      slab_full(pool, &slab(index));
    }
  }
}

bool page_has_room(Pool* pool, Index page) {
  const Granule& first = granule(page);
  if (first.uncut != page_end(page)) {
    return true;
  }
  for (Index index = page; index != first.uncut; index += slab_step(pool)) {
    if (granule(index).place != Place::full) {
      return true;
    }
  }
  return false;
}

void page_move(Pool* to, Pool* from, Index page) {
  Granule& first = granule(page);
  for (Index index = page; index != first.uncut; index += slab_step(from)) {
    Slab& record = slab(index);
    Granule& info = granule(index);
    if (*from->current == &record) {
      *from->current = &by_block_no_slab;
      info.place = Place::partial;
      list_push(from->partial, index);
    }
    if (info.place == Place::partial || info.place == Place::empty) {
      const bool partial = info.place == Place::partial;
      list_remove(partial ? from->partial : from->empty, index);
      list_push(partial ? to->partial : to->empty, index);
    }
    record.pool.store(to, std::memory_order_release);
    record.owner.store(to->thread, std::memory_order_relaxed);
  }
  if (from->cutting == page) {
    from->cutting = 0;
    to->cutting = page;  // adopting begins when nothing is left to cut, and at most one page of `from` is being cut
  }
  from->busy_slabs -= first.busy;
  to->busy_slabs += first.busy;
  if (first.busy == 0) {
    from->free_page_bytes -= page_bytes(page);
    to->free_page_bytes += page_bytes(page);
  }
  page_unlink(from, page);
  page_link(to, page);
}

}  // namespace

unsigned pool_adopt(Pool* to, Pool* from, unsigned limit) {
  pool_drain_inbox(from);
  from->holds_pages = to->holds_pages = true;
  unsigned moved = 0;
  unsigned seen = 0;
  constexpr unsigned seen_limit = 64;  // bounds the time: 64 pages of at most 128 slabs
  for (Index page = from->pages; page != 0 && moved < limit && seen < seen_limit; ++seen) {
    const Index next = granule(page).next;
    if (page_has_room(from, page)) {
      if (page_disarm(from, page)) {
        page_move(to, from, page);
        page_rearm(to, page);
        ++moved;
      } else {
        page_rearm(from, page);
      }
    }
    page = next;
  }
  from->holds_pages = to->holds_pages = false;
  return moved;
}

void pool_add_statistics(const Pool* pool, by_block_statistics* sum) {
  note_peak(const_cast<Pool*>(pool));
  std::size_t live = 0;
  for (Index page = pool->pages; page != 0; page = granule(page).next) {
    for (Index index = page; index != granule(page).uncut; index += slab_step(pool)) {
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
