/// blockyard::block_resource: block allocators behind std::pmr::memory_resource.
///
/// A request of up to 512 bytes gets a block of its size, rounded up to 16 bytes, from a BlockAllocator of the
/// resource, with the bounds of block_allocator.hpp and a virtual call. A larger one goes to the upstream resource. The
/// destructor and release() free all blocks at once. Memory from upstream must be freed by then, as every std::pmr
/// container does. allocate() throws std::bad_alloc when memory is exhausted.
///
/// Thread-safety: one thread at a time, like std::pmr::unsynchronized_pool_resource.
#ifndef BLOCKYARD_BLOCK_RESOURCE_HPP
#define BLOCKYARD_BLOCK_RESOURCE_HPP

#include <array>
#include <cstddef>
#include <memory_resource>
#include <utility>

#include "blockyard/block_allocator.hpp"

namespace blockyard {

class BY_API block_resource : public std::pmr::memory_resource {
 public:
  /// Larger requests go upstream. Bytes.
  static constexpr std::size_t largest_block = 512;

  explicit block_resource(std::pmr::memory_resource* upstream = std::pmr::get_default_resource()) noexcept;
  ~block_resource() override;
  block_resource(const block_resource&) = delete;
  block_resource& operator=(const block_resource&) = delete;

  /// Frees all blocks at once. O(slabs). Memory from upstream stays allocated.
  void release() noexcept;

  [[nodiscard]] std::pmr::memory_resource* upstream_resource() const noexcept { return upstream_; }

  /// What the block allocators hold, all sizes together. O(slabs).
  [[nodiscard]] by_block_statistics statistics() const noexcept;

 private:
  static constexpr std::size_t step = 16;
  static constexpr std::size_t sizes = largest_block / step;

  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override;

  /// The allocator for a request, or nullptr when it goes upstream. A block's allocate and free get the same answer.
  BlockAllocator* blocks_for(std::size_t bytes, std::size_t alignment) noexcept;

  std::pmr::memory_resource* upstream_;
  std::array<BlockAllocator, sizes> blocks_;
};

}  // namespace blockyard

#endif
