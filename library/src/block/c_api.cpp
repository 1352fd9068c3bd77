// The C functions of BlockAllocator. A pool's own record is a static block, so making one costs no system call of its
// own.
#include <cerrno>
#include <new>

#include "base/bits.hpp"
#include "blockyard/block.h"
#include "blockyard/block_allocator.hpp"
#include "blockyard/static_block_allocator.hpp"

struct by_block_pool {
  by_block_pool(size_t size, size_t alignment) noexcept : blocks(size, alignment) {}
  blockyard::BlockAllocator blocks;
};

namespace {
using Records = blockyard::StaticBlockAllocator<sizeof(by_block_pool), alignof(by_block_pool)>;
}

extern "C" {

by_block_pool* by_block_pool_create(size_t size, size_t alignment) {
  namespace block = blockyard::block;
  const size_t aligned = alignment == 0 ? 16 : alignment;
  if (size == 0 || size > block::max_block_bytes || !blockyard::base::is_power_of_two(aligned) ||
      aligned > block::max_alignment) {
    errno = EINVAL;
    return nullptr;
  }
  void* const memory = Records::allocate();
  if (memory == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  return new (memory) by_block_pool(size, aligned);
}

void by_block_pool_destroy(by_block_pool* pool) {
  if (pool != nullptr) {
    pool->~by_block_pool();
    Records::free(pool);
  }
}

void by_block_pool_set_name(by_block_pool* pool, const char* name) { pool->blocks.set_name(name); }

void* by_block_pool_alloc(by_block_pool* pool) {
  void* const block = pool->blocks.allocate();
  if (block == nullptr) {
    errno = ENOMEM;
  }
  return block;
}

void by_block_pool_free(by_block_pool* pool, void* block) {
  if (block != nullptr) {
    pool->blocks.free(block);
  }
}

void by_block_pool_reset(by_block_pool* pool) { pool->blocks.reset(); }

void by_block_pool_trim(by_block_pool* pool) { pool->blocks.trim(); }

void by_block_pool_get_statistics(by_block_pool* pool, by_block_statistics* statistics) {
  *statistics = pool->blocks.statistics();
}
}
