// Chains of freed blocks: kept whole, and handed to the fast path piece by piece.
#include <algorithm>

#include "block/pool_parts.hpp"
#include "blockyard/static_block_allocator.hpp"

namespace blockyard::block {

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

void pool_free_chain(Pool* pool, void* first, void* last, std::size_t count) {
  set_chain_next(last, nullptr, pool->stride);
  set_next_chain(first, pool->chain, pool->stride);
  pool->chain = first;
  pool->chained_blocks += count;
}

void end_loose(Pool* pool) {
  pool->loose.free = nullptr;
  pool->loose.bump = pool->loose.end = nullptr;
  pool->loose.excess = 0;
  pool->loose_rest = 0;
}

namespace {

// So that its slab notices. Blocks of a static chain may be any thread's.
void free_chained(Pool* pool, void* block) {
  Slab* const record = slab_of(block, slab_mask_of(pool->shift));
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

}  // namespace

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

}  // namespace blockyard::block
