/// PagedAllocator<T>: the allocator that game engines use today, to compare BlockAllocator with.
///
/// Algorithm: pages of blocks, and beside them an array of pointers to the free ones. The technique is that of Godot
/// Engine's PagedAllocator (core/templates/paged_allocator.h); the code is our own.
///
/// Time: allocate and free take O(1), one access to the array each. When no free pointer is left, a page comes from
/// malloc, O(blocks of a page). Memory: 8 bytes per block for the array. Memory goes back only at reset() or
/// destruction, and once blocks were freed in random order, they are handed out in random order. BlockAllocator has
/// neither weakness.
///
/// Thread-safety: one thread at a time.
#ifndef BLOCKYARD_PAGED_ALLOCATOR_HPP
#define BLOCKYARD_PAGED_ALLOCATOR_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "blockyard/detail/on_throw.hpp"
#include "blockyard/detail/type_record.hpp"

namespace blockyard {

/// The untyped part: blocks of one size, in pages of a power of two blocks.
class PagedBlocks {
 public:
  /// For blocks of `size` bytes at `alignment`, with `page_blocks` (rounded up to a power of two, at most 2^31) per
  /// page.
  PagedBlocks(std::size_t size, std::size_t alignment, std::uint32_t page_blocks = 4096) noexcept
      : size_(size), alignment_(alignment) {
    // A size that can't be rounded up stays, and no page is as large.
    if (size <= SIZE_MAX - alignment) {
      size_ = (std::max(size, std::size_t{1}) + alignment - 1) / alignment * alignment;
    }
    while (page_shift_ < 31 && (std::uint32_t{1} << page_shift_) < page_blocks) {
      ++page_shift_;
    }
  }
  PagedBlocks(const PagedBlocks&) = delete;
  PagedBlocks& operator=(const PagedBlocks&) = delete;
  ~PagedBlocks() { release(); }

  /// Allocates a block. nullptr when memory is exhausted.
  [[nodiscard]] void* allocate() noexcept {
    if (available_count_ == 0 && !add_page()) [[unlikely]] {
      return nullptr;
    }
    --available_count_;
    return available_[available_count_ >> page_shift_][available_count_ & page_mask()];
  }

  /// Frees a block of this allocator. nullptr is not allowed.
  void deallocate(void* block) noexcept { free(block); }
  void free(void* block) noexcept {
    available_[available_count_ >> page_shift_][available_count_ & page_mask()] = block;
    ++available_count_;
  }

  /// Frees all blocks at once and gives the pages back.
  void reset() noexcept {
    release();
    pages_ = nullptr;
    available_ = nullptr;
    page_count_ = available_count_ = 0;
  }

  [[nodiscard]] std::size_t live_blocks() const noexcept {
    return (std::size_t{page_count_} << page_shift_) - available_count_;
  }

 private:
  std::uint32_t page_mask() const { return (std::uint32_t{1} << page_shift_) - 1; }

  [[gnu::noinline]] bool add_page() noexcept {
    const std::size_t blocks = std::size_t{1} << page_shift_;
    std::size_t bytes;
    if (__builtin_mul_overflow(blocks, size_, &bytes)) {
      return false;
    }
    void** const pages = static_cast<void**>(std::realloc(pages_, (page_count_ + 1) * sizeof(void*)));
    if (pages == nullptr) {
      return false;
    }
    pages_ = pages;
    void*** const available = static_cast<void***>(std::realloc(available_, (page_count_ + 1) * sizeof(void*)));
    if (available == nullptr) {
      return false;
    }
    available_ = available;
    auto* const page = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{alignment_}, std::nothrow));
    void** const pointers = static_cast<void**>(std::malloc(blocks * sizeof(void*)));
    if (page == nullptr || pointers == nullptr) {
      ::operator delete (page, std::align_val_t{alignment_});
      std::free(pointers);
      return false;
    }
    pages_[page_count_] = page;
    available_[page_count_] = pointers;
    ++page_count_;
    for (std::size_t i = 0; i < blocks; ++i) {
      available_[0][i] = page + i * size_;
    }
    available_count_ = static_cast<std::uint32_t>(blocks);
    return true;
  }

  void release() noexcept {
    for (std::uint32_t i = 0; i < page_count_; ++i) {
      ::operator delete (pages_[i], std::align_val_t{alignment_});
      std::free(available_[i]);
    }
    std::free(pages_);
    std::free(available_);
  }

  void** pages_ = nullptr;
  void*** available_ = nullptr;
  std::uint32_t page_count_ = 0;
  std::uint32_t available_count_ = 0;
  std::uint32_t page_shift_ = 0;
  std::size_t size_;  ///< of a block, bytes; a multiple of the alignment
  std::size_t alignment_;
};

template <class T>
class PagedAllocator {
 public:
  explicit PagedAllocator(std::uint32_t page_blocks = 4096) noexcept : blocks_(sizeof(T), alignof(T), page_blocks) {}

  /// Makes a T. Throws std::bad_alloc, and whatever T's constructor throws.
  template <class... Arguments>
  [[nodiscard]] T* create(Arguments&&... arguments) {
    void* const taken = block::or_bad_alloc(blocks_.allocate());
    block::OnThrow on_throw([&] { blocks_.free(taken); });
    T* const made = ::new (taken) T(std::forward<Arguments>(arguments)...);
    on_throw.done();
    return made;
  }

  /// Destroys an object that create() made. nullptr is a no-op.
  void destroy(T* object) noexcept {
    if (object != nullptr) {
      std::destroy_at(object);
      blocks_.free(object);
    }
  }

  [[nodiscard]] std::size_t live_blocks() const noexcept { return blocks_.live_blocks(); }

 private:
  PagedBlocks blocks_;
};

}  // namespace blockyard

#endif
