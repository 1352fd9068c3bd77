// The slow paths of a pool: which slab comes next, what becomes of one that is full or empty, when pages come and go,
// and how pages of threads that have ended move to the pools of others.
//
// O(1) for each slab that runs out or empties. One call handles at most 16 KiB or 16 blocks of a chain, and 8 lists of
// remotely freed blocks. reset and trim are O(slabs). The operating system is called when a page is taken (an
// mprotect, and a madvise with huge pages) or given back (one or two), and when the window opens.
#include "block/pool.hpp"

#include <algorithm>
#include <mutex>
#include <new>

#include "base/index_list.hpp"
#include "block/give_back.hpp"
#include "block/watch.hpp"
#include "blockyard/static_block_allocator.hpp"

namespace blockyard::block {

// Freed blocks that their slabs count as live.
std::size_t waiting_blocks(const Pool* pool) {
  const std::size_t used = current_slab(pool) == &pool->chain_slab ? std::size_t{pool->chain_slab.excess} : 0;
  return pool->chained_blocks - used + watch_waiting(pool);
}

void count_chained(Pool* pool, std::size_t gone) {
  if (pool->thread != nullptr) {
    static_chain_used(pool->slot, gone);
  } else {
    pool->chained_blocks -= gone;
  }
}

void end_chain_slab(Pool* pool) {
  pool->chain_slab.free = nullptr;
  pool->chain_slab.bump = pool->chain_slab.end = nullptr;
  pool->chain_slab.excess = 0;
  pool->chain_rest = 0;
  pool->magazine = nullptr;
}

void leave_chain_slab(Pool* pool) {
  set_current_slab(pool, pool->held != nullptr ? pool->held : &by_block_no_slab);
  pool->held = nullptr;
}

namespace {

// A page is at most 4 MiB: larger ones are wholly free less often and make nothing faster.
constexpr unsigned page_order_cap = 22 - slab_shift;
// Pages of 2 MiB and more use huge pages, once the pool holds 1 MiB: what they may waste is then little more than what
// the pool holds already (docs/design/containers.md).
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
constexpr std::size_t huge_from_bytes = std::size_t{1} << 20;  // not before, even if the first page is large

// Blocks of a magazine: enough that passing it on costs each little, and all are still in the first-level cache when
// they are handed out.
constexpr std::size_t most_magazine_blocks = 32;
constexpr std::size_t magazine_bytes = std::size_t{8} << 10;

constinit Pool* store = nullptr;  // pools that serve nobody; guarded by `records_lock`

std::size_t page_bytes(Index page) { return granule_bytes << granule(page).order; }
Index page_end(Index page) { return page + (Index{1} << granule(page).order); }
std::byte* slab_start(const BlockSlab* record) { return address_of(index_of(record)); }
bool is_real(const Pool* pool, const BlockSlab* record) {
  return record != &by_block_no_slab && record != &pool->chain_slab;
}

std::byte* cut_end(const Pool* pool, const BlockSlab* record) {
  return slab_start(record) + std::size_t{pool->capacity} * pool->stride;
}

// Bytes of a slab in front of which every live block lies: all of it where a stretch of freed blocks is cut again.
std::size_t cut_bytes(const Pool* pool, const BlockSlab* record) {
  const std::byte* const high = record->end == cut_end(pool, record) ? record->bump : cut_end(pool, record);
  return static_cast<std::size_t>(high - slab_start(record));
}

void rewind(const Pool* pool, BlockSlab* record) {
  record->free = nullptr;
  record->bump = slab_start(record);
  record->end = cut_end(pool, record);
}

void page_link(Pool* pool, Index page) {
  base::list_push(pool->pages, page, granule);
  pool->page_count += 1;
  pool->held_bytes += page_bytes(page);
  pool->peak_held_bytes = std::max<std::size_t>(pool->peak_held_bytes, pool->held_bytes);
}

void page_unlink(Pool* pool, Index page) {
  base::list_remove(pool->pages, page, granule);
  pool->page_count -= 1;
  pool->held_bytes -= page_bytes(page);
}

// A pool may keep this much free memory whatever its peak.
constexpr std::size_t least_kept_bytes = std::size_t{256} << 10;

bool keeps_too_much(const Pool* pool) {
  return pool->free_page_bytes > std::max(pool->peak_held_bytes / 2, least_kept_bytes);
}

// Updates the pool's peak. In bytes, since a division would show in programs that allocate and free a single block
// again and again.
void note_peak(Pool* pool) {
  const std::size_t slab_bytes = std::size_t{pool->capacity} * pool->stride;
  const std::size_t busy = pool->busy_slabs;
  if (busy * slab_bytes <= pool->peak_cut_bytes) {
    return;
  }
  const BlockSlab* const current = current_slab(pool);
  const std::size_t cut = is_real(pool, current) ? cut_bytes(pool, current) : slab_bytes;
  pool->peak_cut_bytes = std::max<std::size_t>(pool->peak_cut_bytes, (busy - 1) * slab_bytes + cut);
}

// Gives a page without blocks back.
void page_release(Pool* pool, Index page) {
  Granule& first = granule(page);
  for (Index index = page; index != first.uncut; index += slab_step(pool)) {
    base::list_remove(pool->empty, index, slab);
    take_remote_word(granule(index).remote);
    granule(index).state = SlabUse::unused;
    slab(index).owner.store(nullptr, std::memory_order_relaxed);
  }
  if (pool->cutting == page) {
    pool->cutting = 0;
  }
  page_unlink(pool, page);
  pool->free_page_bytes -= page_bytes(page);
  window_give(page, first.order, first.huge);
}

// Enters an empty slab behind the one before it in memory, if that is empty too. So slabs that empty in the order of
// their addresses, as when a container is cleared, are handed out in that order again.
void list_empty(Pool* pool, Index index) {
  const Index before = index - slab_step(pool);
  if (index != granule(index).page && granule(before).state == SlabUse::empty) {
    base::list_push(slab(before).next, index, slab);
    slab(index).previous = before;
  } else {
    base::list_push(pool->empty, index, slab);
  }
}

// The last live block of a slab was freed: the slab returns to its bump pointer. A current one, of which only few were
// in use, is held: a program that allocates and frees a block again and again would come here each time. Few blocks lie
// close together in any order.
void slab_emptied(Pool* pool, BlockSlab* record) {
  constexpr std::size_t few = 16;
  const Index index = index_of(record);
  Granule& info = granule(index);
  note_peak(pool);
  const bool hold = cut_bytes(pool, record) <= few * pool->stride && pool->watch == nullptr;
  rewind(pool, record);
  if (info.state == SlabUse::current) {
    if (hold) {
      record->floor = held_floor;
      record->excess = 1;
    }
    return;
  }
  base::list_remove(pool->partial, index, slab);
  info.state = SlabUse::empty;
  mark_empty(info.remote);
  list_empty(pool, index);
  --pool->busy_slabs;
  Granule& page = granule(info.page);
  if (--page.busy == 0) {
    pool->free_page_bytes += page_bytes(info.page);
    if (keeps_too_much(pool)) {
      page_release(pool, info.page);
    } else {
      want_give_back();
    }
  }
}

// A full slab that has free blocks again, or one that was the current, becomes partial.
void slab_reopen(Pool* pool, BlockSlab* record) {
  record->excess = slab_live(*record);
  record->floor = 0;
  const Index index = index_of(record);
  granule(index).state = SlabUse::partial;
  base::list_push(pool->partial, index, slab);
}

// Takes remotely freed blocks into a slab that is full, partial or current. O(1).
void slab_receive(Pool* pool, BlockSlab* record, const base::RemoteBatch& batch) {
  const Index index = index_of(record);
  if (batch.count != pool->capacity) {  // else it is empty now, and its memory may have been given back
    if (record->free != nullptr) {
      set_link(slab_link_to(index, batch.last), record->free);
    }
    record->free = slab_link_to(index, batch.first);
  }
  const std::uint32_t live = slab_live(*record) - batch.count;
  const bool reopens = granule(index).state == SlabUse::full && live <= record->floor;
  record->excess = live - record->floor;
  if (reopens) {
    slab_reopen(pool, record);
  }
  if (live == 0) {
    slab_emptied(pool, record);
  }
}

// All blocks of the slab are live, except too few to use it: it leaves the lists until enough are freed.
void slab_full(Pool* pool, BlockSlab* record) {
  granule(index_of(record)).state = SlabUse::full;
  const std::uint32_t live = slab_live(*record);
  if (pool->watch != nullptr) {
    return;  // its counts stay as watch_allocate() set them
  }
  if (record->bump == record->end) {
    record->bump = record->end = slab_start(record);  // blocks freed in order from here on can be cut again (slab_put)
  }
  record->floor = pool->reopen;
  record->excess = live - pool->reopen;
}

void count_busy(Pool* pool, Index page) {
  ++pool->busy_slabs;
  if (granule(page).busy++ == 0) {
    pool->free_page_bytes -= page_bytes(page);
  }
}

void make_current(Pool* pool, BlockSlab* record) {
  granule(index_of(record)).state = SlabUse::current;
  set_current_slab(pool, record);
}

struct Run {
  std::size_t blocks;
  std::uint32_t next;  ///< what the last of them links to
};

// How many blocks of a chain are adjacent in memory from `first` on, which `link` names; at most `longest`. It reads a
// block only once it knows that the block is of the chain, since others may be another thread's. It prefetches the next
// page of 4 KiB, where the processor's own prefetching stops.
Run run_from(const std::byte* first, std::uint32_t link, const Pool* pool, std::size_t longest) {
  constexpr std::size_t page = 4096;
  const std::size_t stride = pool->stride;
  const auto step = static_cast<std::uint32_t>(stride >> near_shift_of(stride));
  const auto goes_on = [&](std::size_t i) { return chain_link(first + i * stride, 0) == link + (i + 1) * step; };
  std::size_t last = 0;  // counted from `first`
  while (last + 4 < longest && goes_on(last) && goes_on(last + 1) && goes_on(last + 2) && goes_on(last + 3)) {
    last += 4;
    __builtin_prefetch(first + last * stride + page);
  }
  while (last + 1 < longest && goes_on(last)) {
    ++last;
  }
  return {last + 1, chain_link(first + last * stride, 0)};
}

// Hands a chain's next blocks to the fast path. Mostly they are adjacent, as they were cut; then they are cut again,
// which waits for no link. The limits make it O(1).
void fill_chain_slab(Pool* pool) {
  constexpr std::size_t worth_cutting = 16;
  constexpr std::size_t longest_list = 64;
  // They are still in the first-level cache when they are handed out.
  constexpr std::size_t run_bytes = std::size_t{16} << 10;
  const std::size_t stride = pool->stride;
  const unsigned shift = near_shift_of(stride);
  BlockSlab& chain_slab = pool->chain_slab;
  std::byte* const first = static_cast<std::byte*>(near_target(pool->chain_rest, shift));
  const Run run = run_from(first, pool->chain_rest, pool, std::max(run_bytes / stride, worth_cutting));
  std::uint32_t next = run.next;
  if (run.blocks >= worth_cutting) {
    chain_slab.bump = first;
    chain_slab.end = first + run.blocks * stride;
  } else {
    // Scattered: a free list.
    void* last = first;
    next = chain_link(first, 0);
    for (std::size_t count = 1; next != 0 && count < longest_list; ++count) {
      void* const following = near_target(next, shift);
      set_link(last, following);
      last = following;
      next = chain_link(last, 0);
    }
    set_link(last, nullptr);
    chain_slab.free = first;
  }
  pool->chain_rest = next;
}

bool take_magazine(Pool* pool) {
  pool->chain_slab.free = pool->magazine != nullptr ? pool->magazine : static_magazine_take(pool->slot);
  pool->magazine = nullptr;
  return pool->chain_slab.free != nullptr;
}

bool take_chain(Pool* pool) {
  void* first = nullptr;
  if (pool->thread != nullptr) {
    if (take_magazine(pool)) {
      set_current_slab(pool, &pool->chain_slab);
      return true;
    }
    first = static_chain_take(pool->slot);
  } else if (pool->chain != nullptr) {
    first = pool->chain;
    pool->chain = next_chain(first, pool->stride);
  }
  if (first == nullptr) {
    return false;
  }
  pool->chain_rest = near_link(first, near_shift_of(pool->stride));
  fill_chain_slab(pool);
  set_current_slab(pool, &pool->chain_slab);
  return true;
}

// The current slab had no block left. True if there is one now.
bool current_refilled(Pool* pool) {
  BlockSlab* const record = current_slab(pool);
  if (record == &by_block_no_slab) {
    return false;
  }
  if (record == &pool->chain_slab) {
    if (const std::size_t used = pool->chain_slab.excess; used != 0) {
      pool->chain_slab.excess = 0;
      count_chained(pool, used);
    }
    if (pool->chain_rest != 0) {
      fill_chain_slab(pool);
      return true;
    }
    if (pool->thread != nullptr && take_magazine(pool)) {
      return true;
    }
    leave_chain_slab(pool);
    return current_slab(pool) != &by_block_no_slab;
  }
  if (record->free != nullptr || record->bump != record->end) {
    return true;
  }
  set_current_slab(pool, &by_block_no_slab);
  slab_full(pool, record);
  return false;
}

// Prefetches a slab with scattered free blocks. Otherwise each block would be a cache miss that the next one waits for.
void fetch_blocks(const Pool* pool, const BlockSlab* record) {
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
  base::list_remove(pool->partial, index, slab);
  BlockSlab& record = slab(index);
  fetch_blocks(pool, &record);
  make_current(pool, &record);
  return true;
}

bool take_empty(Pool* pool) {
  const Index index = pool->empty;
  if (index == 0) {
    return false;
  }
  base::list_remove(pool->empty, index, slab);
  take_remote_word(granule(index).remote);
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
  // Not made anew: who gives memory back may look at what the slab was before.
  BlockSlab* const record = &slab(index);
  rewind(pool, record);
  record->excess = record->floor = 0;
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
  first.slab_order = static_cast<std::uint8_t>(least);
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
  constexpr std::size_t lists_at_a_time = 8;
  note_peak(pool);
  if (pool->thread != nullptr) {
    pool_adopt_lists(pool, lists_at_a_time);
  }
  if (current_refilled(pool)) {
    return true;
  }
  if (take_partial(pool) || take_chain(pool) || take_empty(pool) || cut_slab(pool)) {
    return true;
  }
  if (pool->thread != nullptr && static_adopt(pool)) {
    return take_partial(pool) || take_empty(pool) || cut_slab(pool);
  }
  return take_page(pool) && cut_slab(pool);
}

bool page_has_room(Pool* pool, Index page) {
  const Granule& first = granule(page);
  if (first.uncut != page_end(page)) {
    return true;
  }
  for (Index index = page; index != first.uncut; index += slab_step(pool)) {
    if (granule(index).state != SlabUse::full) {
      return true;
    }
  }
  return false;
}

void page_move(Pool* to, Pool* from, Index page) {
  Granule& first = granule(page);
  for (Index index = page; index != first.uncut; index += slab_step(from)) {
    BlockSlab& record = slab(index);
    Granule& info = granule(index);
    if (current_slab(from) == &record) {
      set_current_slab(from, &by_block_no_slab);
      slab_reopen(from, &record);
    }
    if (info.state == SlabUse::partial || info.state == SlabUse::empty) {
      const bool partial = info.state == SlabUse::partial;
      base::list_remove(partial ? from->partial : from->empty, index, slab);
      base::list_push(partial ? to->partial : to->empty, index, slab);
    }
    record.pool.store(to, std::memory_order_release);
    record.owner.store(to->thread, std::memory_order_relaxed);
  }
  if (from->cutting == page) {
    from->cutting = 0;
    to->cutting = page;  // `to` has none: it adopts when it has nothing left to cut
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

Pool* pool_create(std::size_t stride, BlockSlab** current) {
  if (!window_open()) {
    return nullptr;
  }
  void* memory = nullptr;
  {
    const std::lock_guard lock(records_lock);
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
  pool->reopen = pool->capacity - pool->capacity / 8;
  pool->magazine_blocks = static_cast<std::uint32_t>(std::min(most_magazine_blocks, magazine_bytes / stride));
  return pool;
}

void pool_destroy(Pool* pool) {
  if (pool->name != nullptr) {
    pool_set_name(pool, nullptr);  // first: who reports named pools reads what ends here
  }
  watch_pool_ends(pool);
  for (Index page = pool->pages; page != 0;) {
    const Granule& first = granule(page);
    const Index next = first.next;
    for (Index index = page; index != first.uncut; index += slab_step(pool)) {
      take_remote_word(granule(index).remote);
      granule(index).state = SlabUse::unused;
    }
    window_give(page, first.order, first.huge);
    page = next;
  }
  const std::lock_guard lock(records_lock);
  pool->next_free = store;
  store = pool;
}

void* pool_allocate_slow(Pool* pool) {
  do {
    if (void* const block = slab_take(current_slab(pool), pool->stride); block != nullptr) {
      return block;
    }
  } while (refill(pool));
  return nullptr;
}

void pool_free_slow(Pool* pool, BlockSlab* record) { (record->floor != 0 ? slab_reopen : slab_emptied)(pool, record); }

void pool_free(Pool* pool, void* block) {
  BlockSlab* const record = slab_of(block, slab_mask_of(pool->shift));
  if (!slab_put(record, block, pool->stride)) {
    pool_free_slow(pool, record);
  }
}

void pool_reset(Pool* pool) {
  note_peak(pool);
  set_current_slab(pool, &by_block_no_slab);
  pool->chain = nullptr;
  pool->chained_blocks = 0;
  end_chain_slab(pool);
  pool->partial = 0;
  pool->empty = 0;
  pool->busy_slabs = 0;
  pool->free_page_bytes = std::size_t{pool->held_bytes};
  for (Index page = pool->pages; page != 0;) {
    Granule& first = granule(page);
    const Index next = first.next;
    first.busy = 0;
    // From the last to the first, so that the list hands them out in the order of their addresses.
    for (Index index = first.uncut; index != page;) {
      index -= slab_step(pool);
      BlockSlab& record = slab(index);
      rewind(pool, &record);
      record.floor = 0;
      record.excess = 0;
      if (granule(index).state != SlabUse::empty) {
        granule(index).state = SlabUse::empty;
        mark_empty(granule(index).remote);
      }
      base::list_push(pool->empty, index, slab);
    }
    if (keeps_too_much(pool)) {
      page_release(pool, page);
    }
    page = next;
  }
  want_give_back();
}

void pool_trim(Pool* pool) {
  pool_free_chain_slab(pool);
  pool_adopt_lists(pool, ~std::size_t{0});
  // An empty current slab would keep its page.
  if (BlockSlab* const record = current_slab(pool); is_real(pool, record) && slab_live(*record) == 0) {
    set_current_slab(pool, &by_block_no_slab);
    slab_reopen(pool, record);
    slab_emptied(pool, record);
  }
  for (Index page = pool->pages; page != 0;) {
    const Index next = granule(page).next;
    if (granule(page).busy == 0) {
      page_release(pool, page);
    }
    page = next;
  }
  pool->peak_held_bytes = pool->held_bytes;
}

void pool_free_remote(void* block, BlockSlab* record) {
  // The block is live until it is pushed, so its slab is not given back. Its owner may change before or after.
  const Index index = index_of(record);
  Granule& info = granule(index);
  const auto link = [block, index](std::uint32_t next) { set_link(block, slab_link_to(index, next)); };
  if (RemoteList::push(info.remote, info.oldest, slab_link_from(index, block), link)) {
    PendingStack::push(record->pool.load(std::memory_order_acquire)->pending, index, info.pending_next);
    want_give_back();
  }
}

void pool_adopt_lists(Pool* pool, std::size_t most) {
  for (; most != 0; --most) {
    if (pool->taken == 0 && (pool->taken = PendingStack::take(pool->pending)) == 0) {
      return;
    }
    const Index index = pool->taken;
    Granule& info = granule(index);
    pool->taken = info.pending_next.load(std::memory_order_relaxed);
    Pool* const owner = slab(index).pool.load(std::memory_order_acquire);
    if (owner == pool) {
      const std::uint32_t last = info.oldest.load(std::memory_order_relaxed);
      const std::uint64_t word = take_remote_word(info.remote);
      slab_receive(pool, &slab(index), {static_cast<std::uint32_t>(word), last, RemoteList::count_of(word)});
    } else {
      PendingStack::push(owner->pending, index, info.pending_next);  // it was announced before pool_adopt() moved it
    }
  }
}

bool pool_keep(Pool* pool, void* block) {
  BlockSlab& chain_slab = pool->chain_slab;
  const std::uint32_t most = pool->magazine_blocks;
  if (static_cast<std::int32_t>(chain_slab.excess) <= -static_cast<std::int32_t>(most)) {
    if (most == 0 || (pool->magazine != nullptr && !static_magazine_give(pool, pool->magazine))) {
      return false;
    }
    pool->magazine = chain_slab.free;
    chain_slab.free = nullptr;
    chain_slab.excess += most;
    static_chain_used(pool->slot, std::size_t{0} - most);
  }
  if (current_slab(pool) != &chain_slab) {
    pool->held = is_real(pool, current_slab(pool)) ? current_slab(pool) : nullptr;
    set_current_slab(pool, &chain_slab);
  }
  set_link(block, chain_slab.free);
  chain_slab.free = block;
  chain_slab.excess -= 1;
  return true;
}

void pool_add_held(const Pool* pool, by_block_statistics* sum) {
  sum->peak_blocks += pool->peak_cut_bytes / pool->stride;
  sum->pages += pool->page_count;
  sum->held_bytes += pool->held_bytes;
  sum->free_page_bytes += pool->free_page_bytes;
}

void pool_add_statistics(const Pool* pool, by_block_statistics* sum) {
  note_peak(const_cast<Pool*>(pool));
  std::size_t live = 0;
  for (Index page = pool->pages; page != 0; page = granule(page).next) {
    for (Index index = page; index != granule(page).uncut; index += slab_step(pool)) {
      live += slab_live(slab(index));
    }
  }
  live -= waiting_blocks(pool);
  sum->live_blocks += live;
  sum->live_bytes += live * pool->stride;
  pool_add_held(pool, sum);
}

unsigned pool_adopt(Pool* to, Pool* from, unsigned limit) {
  pool_adopt_lists(from, ~std::size_t{0});
  unsigned moved = 0;
  unsigned seen = 0;
  constexpr unsigned seen_limit = 64;  // bounds the time: 64 pages of at most 128 slabs
  for (Index page = from->pages; page != 0 && moved < limit && seen < seen_limit; ++seen) {
    const Index next = granule(page).next;
    if (page_has_room(from, page)) {
      page_move(to, from, page);
      ++moved;
    }
    page = next;
  }
  return moved;
}

}  // namespace blockyard::block
