/// BlockAllocator: blocks of one size, one owner, not a template.
///
/// Bounds: allocate and free O(1), a dozen instructions; every few hundredth or thousandth takes a slab, O(1); the
/// operating system is asked when a page is used up (one madvise), and given a wholly free page back (one madvise)
/// while more than half of the most that was ever held is free. Overhead: see block.h; the object itself is 24 bytes
/// and holds no memory before its first block.
///
/// Freed blocks are linked through themselves. A slab whose last block is freed returns to bump order: what is cut from
/// it next lies in address order again, however scrambled the frees were.
///
/// Thread-safety: one thread at a time, like a std container. The owner may change.
#ifndef BLOCKYARD_BLOCK_ALLOCATOR_HPP
#define BLOCKYARD_BLOCK_ALLOCATOR_HPP

#include <cstddef>
#include <cstdint>

#include "blockyard/block.h"
#include "blockyard/detail/block_slab.hpp"

namespace blockyard {

class BY_API BlockAllocator {
 public:
  /// For blocks of `size` bytes, at most block::max_block_bytes, at `alignment`, a power of two of at most
  /// block::max_alignment. Takes no memory. Values out of range make an allocator whose every allocate() fails.
  explicit BlockAllocator(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) noexcept;

  /// Gives every page back, whatever still lives in them.
  ~BlockAllocator();

  BlockAllocator(const BlockAllocator&) = delete;
  BlockAllocator& operator=(const BlockAllocator&) = delete;

  /// A block, contents unspecified; nullptr when memory is exhausted.
  [[nodiscard]] void* allocate() noexcept {
    void* const ready = take_ready();
    return ready != nullptr ? ready : allocate_slow();
  }

  /// A block that lies ready, else nullptr: the fast path of allocate().
  [[nodiscard, gnu::always_inline]] void* take_ready() noexcept {
#if defined(BLOCKYARD_CHECKED) && BLOCKYARD_CHECKED
    return nullptr;
#else
    return block::slab_take(current_, stride_);
#endif
  }

  /// Gives back a block that this allocator's allocate() returned. nullptr is not a block.
  void free(void* block) noexcept {
#if defined(BLOCKYARD_CHECKED) && BLOCKYARD_CHECKED
    free_checked(block);
#else
    block::Slab* const slab = block::slab_of(block, mask_);
    if (!block::slab_put(slab, block, stride_)) [[unlikely]] {
      free_slow(slab);
    }
#endif
  }

  /// Gives back `count` blocks at once, O(1): linked from `first` to `last` by block::set_chain_next(). They are handed
  /// out again in that order, before fresh memory is cut. Their pages stay held until trim() or reset().
  void free_chain(void* first, void* last, std::size_t count) noexcept;

  /// Frees all blocks at once: O(slabs). Keeps at most half of the most bytes ever held, in bump order.
  void reset() noexcept;

  /// Gives every wholly free page back to the operating system: O(slabs and blocks freed by free_chain).
  void trim() noexcept;

  /// Bytes from one block to the next.
  [[nodiscard]] std::size_t block_bytes() const noexcept { return stride_; }

  /// Whether `size` and `alignment` fit this allocator's blocks.
  [[nodiscard]] bool fits(std::size_t size, std::size_t alignment) const noexcept {
    return stride_ != 0 && size <= stride_ && stride_ % alignment == 0;
  }

  /// O(slabs).
  [[nodiscard]] by_block_statistics statistics() const noexcept;

  /// Walks every slab and free list and says whether counts, links and places agree: for tests. O(blocks).
  [[nodiscard]] bool invariants_hold() const noexcept;

 private:
  void* allocate_slow() noexcept;
  void free_slow(block::Slab* slab) noexcept;
  void free_checked(void* block) noexcept;

  block::Slab* current_ = &block::by_block_no_slab;  ///< where the next block comes from
  std::uint32_t stride_;                             ///< bytes; 0 when the size was out of range
  std::int32_t mask_;                                ///< how a block tells its slab: block::slab_mask_of()
  block::Pool* pool_ = nullptr;                      ///< slabs and pages; made with the first block
};

}  // namespace blockyard

#endif
