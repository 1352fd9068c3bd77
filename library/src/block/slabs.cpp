// What becomes of a slab that fills up, has free blocks again, or empties, and when its page goes back.
#include <algorithm>

#include "block/pool_parts.hpp"

namespace blockyard::block {

// In bytes, since a division would show in programs that allocate and free a single block again and again.
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

void page_release(Pool* pool, Index page) {
  Slice& first = slice(page);
  for (Index index = page; index != first.uncut; index += slab_step(pool)) {
    list_remove(pool->empty, index);
    slice(index).place = Place::unused;
    slab(index).owner.store(nullptr, std::memory_order_relaxed);
  }
  if (pool->cutting == page) {
    pool->cutting = 0;
  }
  page_unlink(pool, page);
  pool->free_page_bytes -= page_bytes(page);
  window_give(page, first.order, first.huge);
}

namespace {

// Enters an empty slab behind the one before it in memory, if that is empty too. So slabs that empty in the order of
// their addresses, as when a container is cleared, are handed out in that order again.
void list_empty(Pool* pool, Index index) {
  const Index before = index - slab_step(pool);
  if (index != slice(index).page && slice(before).place == Place::empty) {
    list_insert_after(before, index);
  } else {
    list_push(pool->empty, index);
  }
}

}  // namespace

void slab_emptied(Pool* pool, Slab* record) {
  const Index index = index_of(record);
  Slice& info = slice(index);
  note_peak(pool);
  rewind(pool, record);
  if (info.place == Place::current) {
    return;
  }
  list_remove(pool->partial, index);
  info.place = Place::empty;
  list_empty(pool, index);
  --pool->busy_slabs;
  Slice& page = slice(info.page);
  if (--page.busy == 0) {
    pool->free_page_bytes += page_bytes(info.page);
    if (keeps_too_much(pool)) {
      page_release(pool, info.page);
    }
  }
}

void slab_reopen(Pool* pool, Slab* record) {
  record->excess = slab_live(*record);
  record->floor = 0;
  const Index index = index_of(record);
  slice(index).place = Place::partial;
  list_push(pool->partial, index);
}

void slab_receive(Pool* pool, Slab* record, const base::RemoteBatch& batch) {
  const Index index = index_of(record);
  if (record->free != nullptr) {
    set_link(slab_link_to(index, batch.last), record->free);
  }
  record->free = slab_link_to(index, batch.first);
  const std::uint32_t live = slab_live(*record) - batch.count;
  const bool reopens = slice(index).place == Place::full && live <= record->floor;
  record->excess = live - record->floor;
  if (reopens) {
    slab_reopen(pool, record);
  }
  if (live == 0) {
    slab_emptied(pool, record);
  }
}

void slab_full(Pool* pool, Slab* record) {
  slice(index_of(record)).place = Place::full;
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

}  // namespace blockyard::block
