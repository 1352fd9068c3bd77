// Chains of freed blocks: kept whole, and handed to the fast path piece by piece.
#include <algorithm>

#include "block/pool.hpp"
#include "blockyard/static_block_allocator.hpp"

namespace blockyard::block {

void count_chained(Pool* pool, std::size_t gone) {
  if (pool->thread != nullptr) {
    static_chain_used(pool->slot, gone);
  } else {
    pool->chained_blocks -= gone;
  }
}

namespace {

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

}  // namespace

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

void pool_free_chain(Pool* pool, void* first, void* last, std::size_t count) {
  set_chain_next(last, nullptr, pool->stride);
  set_next_chain(first, pool->chain, pool->stride);
  pool->chain = first;
  pool->chained_blocks += count;
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

// Returns a block to its slab. Blocks of a static chain may be any thread's.
void free_chained(Pool* pool, void* block) {
  BlockSlab* const record = slab_of(block, slab_mask_of(pool->shift));
  if (record->pool.load(std::memory_order_relaxed) == pool) {
    pool_free(pool, block);
  } else {
    pool_free_remote(block, record);
  }
}

// Frees a chain block by block. How many there were.
std::size_t free_whole_chain(Pool* pool, void* block) {
  std::size_t count = 0;
  for (; block != nullptr; ++count) {
    void* const next = chain_next(block, pool->stride);
    free_chained(pool, block);
    block = next;
  }
  return count;
}

// Frees what `chain_slab` holds and would serve next. How many there were.
std::size_t free_chain_slab(Pool* pool) {
  BlockSlab& chain_slab = pool->chain_slab;
  std::size_t count = 0;
  for (void* list : {chain_slab.free, pool->magazine}) {
    for (void* block = list; block != nullptr; ++count) {
      void* const next = link_of(block);
      free_chained(pool, block);
      block = next;
    }
  }
  for (std::byte* block = chain_slab.bump; block != chain_slab.end; block += pool->stride, ++count) {
    free_chained(pool, block);
  }
  void* const rest = pool->chain_rest == 0 ? nullptr : near_target(pool->chain_rest, near_shift_of(pool->stride));
  return count + free_whole_chain(pool, rest);
}

}  // namespace

void pool_free_chain_slab(Pool* pool) {
  if (current_slab(pool) == &pool->chain_slab) {
    leave_chain_slab(pool);
    const auto used = static_cast<std::int32_t>(pool->chain_slab.excess);
    count_chained(pool, static_cast<std::size_t>(used) + free_chain_slab(pool));
    end_chain_slab(pool);
  }
  while (void* const first = pool->chain) {
    pool->chain = next_chain(first, pool->stride);
    count_chained(pool, free_whole_chain(pool, first));
  }
}

}  // namespace blockyard::block
