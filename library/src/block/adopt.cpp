// Pages of threads that have ended change hands.
#include "block/pool_parts.hpp"

namespace blockyard::block {
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

}  // namespace blockyard::block
