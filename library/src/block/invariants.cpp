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
  const BlockSlab& record = slab(index);
  const Granule& info = granule(index);
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
           (info.state == SlabUse::empty ? 0u : 1u);  // each free must take the slow path: watch_undo_put()
  }
  switch (info.state) {
    case SlabUse::current:
      return (current_slab(pool) == &record || pool->held == &record) &&
             (record.floor == 0 || record.floor == held_floor);
    case SlabUse::partial:
      return live != 0 && record.floor == 0;
    case SlabUse::empty:
      return live == 0 && cut == 0 && record.floor == 0 && remote != 0;
    case SlabUse::full:
      return record.floor == pool->reopen && live > record.floor;
    case SlabUse::unused:
      break;
  }
  return false;
}

// Slabs in a list, which must all be in this state. A number that no pool has when the links disagree.
std::size_t count_in_state(Index head, SlabUse state) {
  constexpr std::size_t wrong = ~std::size_t{0};
  std::size_t count = 0;
  Index previous = 0;
  for (Index index = head; index != 0; index = slab(index).next) {
    if (granule(index).state != state || slab(index).previous != previous) {
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
  for (Index page = pool->pages; page != 0; page = granule(page).next) {
    const Granule& first = granule(page);
    const Index end = page + (Index{1} << first.order);
    std::size_t busy = 0;
    for (Index index = page; index != first.uncut; index += slab_step(pool)) {
      if (index >= end || granule(index).page != page || !slab_holds(pool, index)) {
        return false;
      }
      ++states[static_cast<std::size_t>(SlabUse{granule(index).state})];
      busy += granule(index).state != SlabUse::empty;
    }
    if (busy != first.busy || (first.uncut != end && pool->cutting != page)) {
      return false;
    }
    cutting_found = cutting_found || pool->cutting == page;
    ++pages;
    held += granule_bytes << first.order;
    free_bytes += busy == 0 ? granule_bytes << first.order : 0;
  }
  const auto at = [&](SlabUse state) { return states[static_cast<std::size_t>(state)]; };
  const bool serves_chain = current_slab(pool) == &pool->chain_slab;
  const bool has_current = serves_chain ? pool->held != nullptr : current_slab(pool) != &by_block_no_slab;
  return (serves_chain || pool->held == nullptr) && cutting_found && pages == pool->page_count &&
         held == pool->held_bytes && free_bytes == pool->free_page_bytes &&
         at(SlabUse::partial) == count_in_state(pool->partial, SlabUse::partial) &&
         at(SlabUse::empty) == count_in_state(pool->empty, SlabUse::empty) &&
         at(SlabUse::current) == (has_current ? 1u : 0u) &&
         pool->busy_slabs == at(SlabUse::current) + at(SlabUse::partial) + at(SlabUse::full);
}

}  // namespace blockyard::block
