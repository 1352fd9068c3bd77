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

void pool_free_chain_slab(Pool* pool) {
  // Blocks of a static chain may be any thread's.
  const auto free_chained = [=](void* block) {
    BlockSlab* const record = slab_of(block, slab_mask_of(pool->shift));
    if (record->pool.load(std::memory_order_relaxed) == pool) {
      pool_free(pool, block);
    } else {
      pool_free_remote(block, record);
    }
  };
  if (BlockSlab& chain_slab = pool->chain_slab; current_slab(pool) == &chain_slab) {
    leave_chain_slab(pool);
    const auto used = static_cast<std::int32_t>(chain_slab.excess);
    std::size_t freed = 0;
    for (void* list : {chain_slab.free, pool->magazine}) {
      freed += for_each_linked(list, link_of, free_chained);
    }
    for (std::byte* block = chain_slab.bump; block != chain_slab.end; block += pool->stride, ++freed) {
      free_chained(block);
    }
    freed += for_each_chained(chain_target(pool->chain_rest, pool->stride), pool->stride, free_chained);
    count_chained(pool, static_cast<std::size_t>(used) + freed);
    end_chain_slab(pool);
  }
  while (void* const first = pool->chain) {
    pool->chain = next_chain(first, pool->stride);
    count_chained(pool, for_each_chained(first, pool->stride, free_chained));
  }
}

}  // namespace blockyard::block
