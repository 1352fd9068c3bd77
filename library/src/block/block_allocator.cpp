// BlockAllocator: the public face of one pool. Its out-of-line functions are O(1), except those that walk slabs (reset,
// trim, statistics) or blocks (invariants_hold).
#include "blockyard/block_allocator.hpp"

#include <bit>
#include <new>

#include "base/kept_errno.hpp"
#include "block/pool.hpp"
#include "block/watch.hpp"
#include "blockyard/block.h"
#include "blockyard/static_block_allocator.hpp"

namespace blockyard {

using block::Pool;

BlockAllocator::BlockAllocator(std::size_t size, std::size_t alignment) noexcept
    : stride_(0), mask_(block::slab_mask_of(block::slab_shift)) {
  if (size <= block::max_block_bytes && std::has_single_bit(alignment) && alignment <= block::max_alignment) {
    stride_ = static_cast<std::uint32_t>(block::stride_of(size, alignment));
    mask_ = block::slab_mask_of(block::slab_shift_of(stride_));
  }
}

BlockAllocator::~BlockAllocator() {
  if (pool_ != nullptr) {
    block::pool_destroy(pool_);
  }
}

bool BlockAllocator::make_pool() noexcept {
  Pool* const made = stride_ == 0 ? nullptr : block::pool_create(stride_, &current_);
  if (made != nullptr && block::process_is_watched() && !block::watch_pool(made)) {
    block::pool_destroy(made);
    return false;
  }
  pool_ = made;
  return made != nullptr;
}

void BlockAllocator::set_name(const char* name) noexcept {
  if (pool_ != nullptr || (name != nullptr && make_pool())) {
    block::pool_set_name(pool_, name);
  }
}

const char* BlockAllocator::name() const noexcept { return pool_ == nullptr ? nullptr : pool_->name; }

void* BlockAllocator::allocate_slow() noexcept {
  if (pool_ == nullptr && !make_pool()) [[unlikely]] {
    return nullptr;
  }
  return pool_->watch != nullptr ? block::watch_allocate(pool_) : block::pool_allocate_slow(pool_);
}

void BlockAllocator::free_slow(block::BlockSlab* slab) noexcept {
  if (pool_ == nullptr || pool_->watch != nullptr) {
    void* const freed = slab->free;
    block::watch_undo_put(slab);
    block::watch_free(pool_, nullptr, freed);
  } else {
    block::pool_free_slow(pool_, slab);
  }
}

void BlockAllocator::free_checked(void* freed) noexcept {
  if (pool_ == nullptr || pool_->watch != nullptr) {
    block::watch_free(pool_, nullptr, freed);  // without a pool, every block is a foreign one
  } else {
    block::pool_free(pool_, freed);
  }
}

void BlockAllocator::free_chain(void* first, void* last, std::size_t count) noexcept {
  if (pool_->watch == nullptr) {
    block::pool_free_chain(pool_, first, last, count);
    return;
  }
  block::set_chain_next(last, nullptr, stride_);
  block::for_each_chained(first, stride_, [this](void* freed) { free(freed); });
}

void BlockAllocator::reset() noexcept {
  if (pool_ != nullptr) {
    block::watch_reset(pool_);
    block::pool_reset(pool_);
  }
}

void BlockAllocator::trim() noexcept {
  if (pool_ != nullptr && pool_->watch == nullptr) {
    block::pool_trim(pool_);
  }
}

by_block_statistics BlockAllocator::statistics() const noexcept {
  by_block_statistics result{};
  result.block_bytes = stride_;
  if (pool_ != nullptr) {
    block::pool_add_statistics(pool_, &result);
    result.name = name();
  }
  return result;
}

bool BlockAllocator::invariants_hold() const noexcept {
  return pool_ == nullptr ? current_ == &block::by_block_no_slab : block::pool_invariants_hold(pool_);
}

}  // namespace blockyard

// Its C functions. A pool's own record is a static block, so making one costs no system call of its own.
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
  if (size == 0 || size > block::max_block_bytes || !std::has_single_bit(aligned) || aligned > block::max_alignment) {
    return blockyard::base::failed(EINVAL);
  }
  void* const memory = Records::allocate();
  if (memory == nullptr) {
    return blockyard::base::failed(ENOMEM);
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
  return block != nullptr ? block : blockyard::base::failed(ENOMEM);
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
