/// BlockAllocator: blocks of one size for one owner. Not a template.
///
/// Time: allocate and free take O(1), a dozen instructions; one call in some hundreds takes a slab, also O(1). Calls
/// into the operating system: one or two when a page is used up; one or two to give a free page back, while free pages
/// are more than half of the most ever held. Memory: see block.h. The object is 24 bytes and holds no memory before its
/// first block.
///
/// Algorithm: a free list per slab, linked through the freed blocks, and a bump pointer for what was never cut
/// (block_slab.hpp). A slab whose last block is freed returns to its bump pointer, so that the blocks cut from it next
/// lie in the order of their addresses, in whatever order they were freed. The slab in use does so only when more than
/// 16 of its blocks were: a block that comes and goes in an empty pool then costs no more than in a full one.
///
/// Thread-safety: one thread at a time, like a standard container. Which one may change.
#ifndef BLOCKYARD_BLOCK_ALLOCATOR_HPP
#define BLOCKYARD_BLOCK_ALLOCATOR_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "blockyard/block.h"
#include "blockyard/detail/block_slab.hpp"
#include "blockyard/detail/on_throw.hpp"
#include "blockyard/detail/type_record.hpp"

namespace blockyard {

class BY_API BlockAllocator {
 public:
  /// For blocks of `size` bytes, up to block::max_block_bytes, at `alignment`, a power of two up to
  /// block::max_alignment. Takes no memory. With values out of range every allocate() fails.
  explicit BlockAllocator(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) noexcept;

  /// Gives every page back, with the blocks that are still live.
  ~BlockAllocator();

  BlockAllocator(const BlockAllocator&) = delete;
  BlockAllocator& operator=(const BlockAllocator&) = delete;

  /// Allocates a block, contents unspecified. nullptr when memory is exhausted. O(1).
  [[nodiscard]] void* allocate() noexcept {
    void* const ready = take_ready();
    return ready != nullptr ? ready : allocate_slow();
  }

  /// The fast path of allocate(): a block of the current slab, or nullptr when that has none.
  [[nodiscard, gnu::always_inline]] void* take_ready() noexcept {
#if defined(BLOCKYARD_CHECKED) && BLOCKYARD_CHECKED
    return nullptr;
#else
    return block::slab_take(current_, stride_);
#endif
  }

  /// Frees a block that this allocator's allocate() returned. nullptr is not allowed. O(1).
  void deallocate(void* block) noexcept { free(block); }
  void free(void* block) noexcept {
#if defined(BLOCKYARD_CHECKED) && BLOCKYARD_CHECKED
    free_checked(block);
#else
    block::BlockSlab* const slab = block::slab_of(block, mask_);
    if (!block::slab_put(slab, block, stride_)) [[unlikely]] {
      free_slow(slab);
    }
#endif
  }

  /// Frees a *chain*: `count` blocks linked from `first` to `last` by block::set_chain_next(). O(1). They are handed
  /// out again in that order, before fresh memory is cut. Their pages are held until trim() or reset().
  void free_chain(void* first, void* last, std::size_t count) noexcept;

  /// Frees all blocks at once. O(slabs). Keeps pages up to half of the most bytes ever held.
  void reset() noexcept;

  /// Gives every wholly free page back to the operating system. O(slabs, and blocks freed by free_chain).
  void trim() noexcept;

  /// The stride: bytes from one block to the next. 0 when the size was out of range.
  [[nodiscard]] std::size_t block_bytes() const noexcept { return stride_; }

  /// Whether `size` and `alignment` fit this allocator's blocks.
  [[nodiscard]] bool fits(std::size_t size, std::size_t alignment) const noexcept {
    return stride_ != 0 && size <= stride_ && stride_ % alignment == 0;
  }

  /// Names the memory: by_block_leak_report() then says how many blocks of it are live. `name` must live as long as the
  /// allocator; nullptr takes it away. Without memory nothing happens. O(allocators with a name), takes a lock.
  void set_name(const char* name) noexcept;
  [[nodiscard]] const char* name() const noexcept;

  /// What the allocator holds. O(slabs).
  [[nodiscard]] by_block_statistics statistics() const noexcept;

  /// Whether the counts, links and places of every slab and free list agree, for tests. O(blocks).
  [[nodiscard]] bool invariants_hold() const noexcept;

 private:
  bool make_pool() noexcept;
  void* allocate_slow() noexcept;
  void free_slow(block::BlockSlab* slab) noexcept;
  void free_checked(void* block) noexcept;

  block::BlockSlab* current_ = &block::by_block_no_slab;  ///< where the next block comes from
  std::uint32_t stride_;                                  ///< bytes; 0 when the size was out of range
  std::int32_t mask_;                                     ///< finds a block's slab: block::slab_mask_of()
  block::Pool* pool_ = nullptr;                           ///< slabs and pages; made with the first block
};

/// Objects of type T in blocks of one owner, such as a level. Bounds and thread-safety: BlockAllocator.
template <class T>
class TypedBlockAllocator {
 public:
  TypedBlockAllocator() noexcept : blocks_(sizeof(T), alignof(T)) {}

  /// Makes a T. Throws std::bad_alloc, and whatever T's constructor throws; nothing is allocated then. O(1).
  template <class... Arguments>
  [[nodiscard]] T* create(Arguments&&... arguments) {
    void* const room = block::or_bad_alloc(blocks_.allocate());
    block::OnThrow on_throw([=, this] { blocks_.deallocate(room); });
    T* const made = ::new (room) T(std::forward<Arguments>(arguments)...);
    on_throw.done();
    return made;
  }
  /// Destroys an object that create() made. nullptr is a no-op. O(1).
  void destroy(T* object) noexcept {
    if (object != nullptr) {
      std::destroy_at(object);
      blocks_.deallocate(object);
    }
  }

  /// The memory: reset() and the destructor of this object give it back without destroying what is alive.
  [[nodiscard]] BlockAllocator& blocks() noexcept { return blocks_; }
  [[nodiscard]] const BlockAllocator& blocks() const noexcept { return blocks_; }

 private:
  BlockAllocator blocks_;
};

}  // namespace blockyard

#endif
