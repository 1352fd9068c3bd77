// Chains of freed blocks that come and go; pool.cpp hands their blocks out.
#include "block/pool.hpp"
#include "blockyard/static_block_allocator.hpp"

namespace blockyard::block {

void pool_free_chain(Pool* pool, void* first, void* last, std::size_t count) {
  set_chain_next(last, nullptr, pool->stride);
  set_next_chain(first, pool->chain, pool->stride);
  pool->chain = first;
  pool->chained_blocks += count;
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
