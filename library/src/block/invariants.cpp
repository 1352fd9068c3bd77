// The invariant walker of a pool: recomputes from the slabs what the slow paths rely on.
#include "block/pool.hpp"

namespace blockyard::block {
namespace {

// Blocks on a list, which must lie in this slab on block boundaries. More than the slab can have when they do not.
std::size_t count_list(const Pool* pool, Index index, const void* block) {
  std::size_t count = 0;
  for (; block != nullptr && count <= pool->capacity; block = link_of(block)) {
    const std::size_t offset = static_cast<std::size_t>(static_cast<const std::byte*>(block) - address_of(index));
    if (offset >= std::size_t{pool->capacity} * pool->stride || offset % pool->stride != 0) {
      return pool->capacity + std::size_t{1};
    }
    ++count;
  }
  return count;
}

bool slab_holds(const Pool* pool, Index index) {
  const Slab& record = slab(index);
  const Slice& info = slice(index);
  const std::byte* const cut_end = address_of(index) + std::size_t{pool->capacity} * pool->stride;
  if (record.bump < address_of(index) || record.end < record.bump || record.end > cut_end) {
    return false;
  }
  const std::size_t cut = pool->capacity - static_cast<std::size_t>(record.end - record.bump) / pool->stride;
  const std::size_t free = count_list(pool, index, record.free);
  const std::size_t live = slab_live(record);
  if (record.pool.load(std::memory_order_relaxed) != pool || free + live != cut) {
    return false;
  }
  const std::uint64_t remote = info.remote.load(std::memory_order_acquire);
  if (RemoteList::count_of(remote) > live || (pool->thread == nullptr && RemoteList::count_of(remote) != 0)) {
    return false;
  }
  if (pool->watch != nullptr) {
    return record.excess ==
           (info.state == SlabState::empty ? 0u : 1u);  // each free must take the slow path: watch_undo_put()
  }
  switch (info.state) {
    case SlabState::current:
      return (*pool->current == &record || pool->held == &record) && (record.floor == 0 || record.floor == held_floor);
    case SlabState::partial:
      return live != 0 && record.floor == 0;
    case SlabState::empty:
      return live == 0 && cut == 0 && record.floor == 0 && remote != 0;
    case SlabState::full:
      return record.floor == pool->reopen && live > record.floor;
    case SlabState::unused:
      break;
  }
  return false;
}

// Slabs in a list, which must all be in this state. A number that no pool has when the links disagree.
std::size_t count_in_state(Index head, SlabState state) {
  constexpr std::size_t wrong = ~std::size_t{0};
  std::size_t count = 0;
  Index previous = 0;
  for (Index index = head; index != 0; index = slab(index).next) {
    if (slice(index).state != state || slab(index).previous != previous) {
      return wrong;
    }
    previous = index;
    ++count;
  }
  return count;
}

}  // namespace

bool pool_invariants_hold(const Pool* pool) {
  std::size_t states[5] = {};
  std::size_t pages = 0;
  std::size_t held = 0;
  std::size_t free_bytes = 0;
  bool cutting_found = pool->cutting == 0;
  for (Index page = pool->pages; page != 0; page = slice(page).next) {
    const Slice& first = slice(page);
    const Index end = page + (Index{1} << first.order);
    std::size_t busy = 0;
    for (Index index = page; index != first.uncut; index += slab_step(pool)) {
      if (index >= end || slice(index).page != page || !slab_holds(pool, index)) {
        return false;
      }
      ++states[static_cast<std::size_t>(SlabState{slice(index).state})];
      busy += slice(index).state != SlabState::empty;
    }
    if (busy != first.busy || (first.uncut != end && pool->cutting != page)) {
      return false;
    }
    cutting_found = cutting_found || pool->cutting == page;
    ++pages;
    held += slice_bytes << first.order;
    free_bytes += busy == 0 ? slice_bytes << first.order : 0;
  }
  const auto at = [&](SlabState state) { return states[static_cast<std::size_t>(state)]; };
  const bool serves_chain = *pool->current == &pool->chain_slab;
  const bool has_current = serves_chain ? pool->held != nullptr : *pool->current != &by_block_no_slab;
  return (serves_chain || pool->held == nullptr) && cutting_found && pages == pool->page_count &&
         held == pool->held_bytes && free_bytes == pool->free_page_bytes &&
         at(SlabState::partial) == count_in_state(pool->partial, SlabState::partial) &&
         at(SlabState::empty) == count_in_state(pool->empty, SlabState::empty) &&
         at(SlabState::current) == (has_current ? 1u : 0u) &&
         pool->busy_slabs == at(SlabState::current) + at(SlabState::partial) + at(SlabState::full);
}

}  // namespace blockyard::block
