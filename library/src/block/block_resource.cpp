// Block allocators behind std::pmr::memory_resource: 32 allocators of 24 bytes, found by a shift and a compare.
#include "blockyard/block_resource.hpp"

#include <utility>

#include "block/pool.hpp"
#include "blockyard/detail/type_record.hpp"

namespace blockyard {
namespace {

template <std::size_t Step, std::size_t... I>
std::array<BlockAllocator, sizeof...(I)> make_allocators(std::index_sequence<I...>) {
  return {BlockAllocator((I + 1) * Step, Step)...};
}

}  // namespace

block_resource::block_resource(std::pmr::memory_resource* upstream) noexcept
    : upstream_(upstream), blocks_(make_allocators<step>(std::make_index_sequence<sizes>())) {}

block_resource::~block_resource() = default;

void block_resource::release() noexcept {
  for (BlockAllocator& blocks : blocks_) {
    blocks.reset();
  }
}

by_block_statistics block_resource::statistics() const noexcept {
  by_block_statistics sum{};
  for (const BlockAllocator& blocks : blocks_) {
    block::add_statistics(sum, blocks.statistics());
  }
  return sum;
}

BlockAllocator* block_resource::blocks_for(std::size_t bytes, std::size_t alignment) noexcept {
  if (bytes > largest_block) {
    return nullptr;  // before rounding, which may overflow
  }
  const std::size_t reach = block::stride_of(bytes, alignment < step ? step : alignment);
  // The block is aligned, since the stride is a multiple of the alignment and slabs are aligned to more.
  return reach <= largest_block ? &blocks_[reach / step - 1] : nullptr;
}

void* block_resource::do_allocate(std::size_t bytes, std::size_t alignment) {
  BlockAllocator* const blocks = blocks_for(bytes, alignment);
  return blocks == nullptr ? upstream_->allocate(bytes, alignment) : block::or_bad_alloc(blocks->allocate());
}

void block_resource::do_deallocate(void* block, std::size_t bytes, std::size_t alignment) {
  if (BlockAllocator* const blocks = blocks_for(bytes, alignment); blocks != nullptr) {
    blocks->free(block);
  } else {
    upstream_->deallocate(block, bytes, alignment);
  }
}

bool block_resource::do_is_equal(const std::pmr::memory_resource& other) const noexcept { return this == &other; }

}  // namespace blockyard
