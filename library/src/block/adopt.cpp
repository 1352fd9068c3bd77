// Adoption: pages of threads that have ended move to the pools of other threads.
#include "block/pool_parts.hpp"

namespace blockyard::block {
namespace {

bool page_has_room(Pool* pool, Index page) {
  const Slice& first = slice(page);
  if (first.uncut != page_end(page)) {
    return true;
  }
  for (Index index = page; index != first.uncut; index += slab_step(pool)) {
    if (slice(index).place != Place::full) {
      return true;
    }
  }
  return false;
}

void page_move(Pool* to, Pool* from, Index page) {
  Slice& first = slice(page);
  for (Index index = page; index != first.uncut; index += slab_step(from)) {
    Slab& record = slab(index);
    Slice& info = slice(index);
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

unsigned pool_adopt(Pool* to, Pool* from, unsigned limit) {
  pool_adopt_lists(from, ~std::size_t{0});
  unsigned moved = 0;
  unsigned seen = 0;
  constexpr unsigned seen_limit = 64;  // bounds the time: 64 pages of at most 128 slabs
  for (Index page = from->pages; page != 0 && moved < limit && seen < seen_limit; ++seen) {
    const Index next = slice(page).next;
    if (page_has_room(from, page)) {
      page_move(to, from, page);
      ++moved;
    }
    page = next;
  }
  return moved;
}

}  // namespace blockyard::block
