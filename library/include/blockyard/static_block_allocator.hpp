/// StaticBlockAllocator: process-wide pools of blocks, found at compile time by size and alignment.
///
/// Time: as BlockAllocator, per thread. allocate() takes one thread-local load more, on Windows a call. free() on the
/// thread that owns the slab takes a load and a compare more, without a lock or an atomic read-modify-write. Any other
/// thread (a *remote free*) keeps the block for its next allocation, without an atomic operation, and hands a magazine
/// of 32 on under a lock. When enough wait, or when the thread never allocated that size, the free takes one
/// compare-and-swap. A lock is also taken when a thread allocates its first block, needs a page, or ends.
///
/// Memory: as BlockAllocator. A thread that allocates also holds 8 KiB of tables, and at least one slab of each size it
/// uses. Unused after remote frees: 64 blocks for each thread and size, and 128 KiB for each size; an eighth of a slab
/// that its owner takes for full; and all that went back to a slab whose owner lives but does not allocate that size.
///
/// Sizes that need the same stride (detail/block_slab.hpp) share a pool. The pools live in libblockyard, so shared
/// objects that link it share them. Nothing is ever destroyed: static constructors and destructors, atexit handlers,
/// thread_local destructors and forked children may allocate and free. A child does not use the slabs of its parent's
/// other threads. When a thread ends, its slabs go to the next thread that starts, or page by page to threads that need
/// memory.
///
/// Limit: 383 different strides above 512 bytes per process; further ones fail to allocate.
#ifndef BLOCKYARD_STATIC_BLOCK_ALLOCATOR_HPP
#define BLOCKYARD_STATIC_BLOCK_ALLOCATOR_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "blockyard/block.h"
#include "blockyard/detail/block_slab.hpp"
#include "blockyard/detail/on_throw.hpp"
#include "blockyard/detail/type_record.hpp"

namespace blockyard::block {

/// A *slot* is a stride's index in a thread's tables. Strides up to 512 bytes have fixed slots.
inline constexpr std::size_t small_stride = 512;
inline constexpr std::size_t slot_count = 512;

/// The part of a thread's state that the fast path reads: for each slot, the slab that blocks come from.
struct ThreadBlocks {
  BlockSlab* current[slot_count];
};

/// The calling thread's. Until the thread allocates its first block, one whose slabs have no blocks.
BY_THREAD_VARIABLE(ThreadBlocks*, by_thread_blocks, thread_blocks)

extern "C" {
BY_API void* by_static_block_allocate(std::size_t stride) noexcept;
/// The same for an object of this type, which leak reports then name.
BY_API void* by_static_block_allocate_typed(std::size_t stride, TypeRecord* type) noexcept;
BY_API void by_static_block_free_slow(BlockSlab* slab) noexcept;
BY_API void by_static_block_free_remote(void* block, BlockSlab* slab) noexcept;
BY_API void by_static_block_free_checked(void* block, std::size_t stride) noexcept;
BY_API void by_static_block_free_chain(std::size_t stride, void* first, void* last, std::size_t count) noexcept;
/// Allocate and free of any stride out of line, for rare calls that want small code. The first throws std::bad_alloc.
BY_API void* by_static_block_take(std::size_t stride);
BY_API void by_static_block_give(void* block, std::size_t stride) noexcept;
/// The slot of a stride above small_stride; 0 when there are too many.
BY_API std::uint32_t by_static_block_slot(std::size_t stride) noexcept;
}

/// Caches the slot of one large stride, once per shared object.
template <std::size_t Stride>
struct LargeSlot {
  static inline constinit std::atomic<std::uint32_t> value{0};

  static std::uint32_t get() noexcept {
    const std::uint32_t known = value.load(std::memory_order_relaxed);
    return known != 0 ? known : find();
  }
  [[gnu::noinline]] static std::uint32_t find() noexcept {
    const std::uint32_t found = by_static_block_slot(Stride);
    value.store(found, std::memory_order_relaxed);
    return found;
  }
};

template <std::size_t Stride>
inline std::uint32_t slot_of() noexcept {
  if constexpr (Stride <= small_stride) {
    return static_cast<std::uint32_t>(Stride / unit);
  } else {
    return LargeSlot<Stride>::get();
  }
}

}  // namespace blockyard::block

namespace blockyard {

/// Blocks of `Size` bytes at `Alignment`. All members are static and any thread may call them; an object is empty.
template <std::size_t Size, std::size_t Alignment = alignof(std::max_align_t)>
class StaticBlockAllocator {
  static_assert(Alignment != 0 && (Alignment & (Alignment - 1)) == 0, "an alignment is a power of two");
  static_assert(Size <= block::max_block_bytes, "blocks of more than 1 MiB belong to a general heap");
  static_assert(Alignment <= block::max_alignment, "alignments above 32 KiB are not supported");

 public:
  /// Bytes from one block to the next.
  static constexpr std::size_t stride = block::stride_of(Size, Alignment);

  /// Allocates a block, contents unspecified. nullptr when memory is exhausted. O(1).
  [[nodiscard]] static void* allocate() noexcept {
    void* const ready = take_ready();
    return ready != nullptr ? ready : block::by_static_block_allocate(stride);
  }

  /// The fast path of allocate(): a block of this thread's current slab, or nullptr when that has none.
  [[nodiscard, gnu::always_inline]] static void* take_ready() noexcept {
#if defined(BLOCKYARD_CHECKED) && BLOCKYARD_CHECKED
    return nullptr;
#else
    return block::slab_take(block::thread_blocks()->current[block::slot_of<stride>()], stride);
#endif
  }

  /// Frees a block of this size, from any thread. nullptr is not allowed. O(1).
  static void deallocate(void* taken) noexcept { free(taken); }
  static void free(void* taken) noexcept {
#if defined(BLOCKYARD_CHECKED) && BLOCKYARD_CHECKED
    block::by_static_block_free_checked(taken, stride);
#else
    block::BlockSlab* const slab = block::slab_of(taken, block::slab_mask_of(block::slab_shift_of(stride)));
    if (slab->owner.load(std::memory_order_relaxed) == block::thread_blocks()) [[likely]] {
      if (!block::slab_put(slab, taken, stride)) [[unlikely]] {
        block::by_static_block_free_slow(slab);
      }
    } else {
      block::by_static_block_free_remote(taken, slab);
    }
#endif
  }

  /// Frees a chain: `count` blocks linked from `first` to `last` by block::set_chain_next(). O(1), takes a lock. Any
  /// thread is handed them again, in that order, before it cuts fresh memory. Their pages are held until
  /// by_static_block_trim().
  static void free_chain(void* first, void* last, std::size_t count) noexcept {
    block::by_static_block_free_chain(stride, first, last, count);
  }

  /// What the pool holds, all threads together. O(slabs of the process).
  [[nodiscard]] static by_block_statistics statistics() noexcept {
    by_block_statistics result;
    by_static_block_get_statistics(stride, &result);
    return result;
  }
};

/// Objects of type T in static blocks. Constructs and destroys them; names T in leak reports. An object is empty.
template <class T>
class TypedStaticBlockAllocator {
 public:
  using Blocks = StaticBlockAllocator<sizeof(T), alignof(T)>;

  /// Makes a T. Throws std::bad_alloc, and whatever T's constructor throws; nothing is allocated then. O(1).
  template <class... Arguments>
  [[nodiscard]] static T* create(Arguments&&... arguments) {
    void* const taken = allocate();
    block::OnThrow on_throw([=] { deallocate(taken); });
    T* const made = ::new (taken) T(std::forward<Arguments>(arguments)...);
    on_throw.done();
    return made;
  }

  /// Destroys an object that create() made, on any thread. nullptr is a no-op. O(1).
  static void destroy(T* object) noexcept {
    if (object != nullptr) {
      std::destroy_at(object);
      deallocate(object);
    }
  }

  /// Allocates a block for a T that the caller constructs. Throws std::bad_alloc.
  [[nodiscard]] static void* allocate() {
    void* taken = Blocks::take_ready();
    if (taken == nullptr) [[unlikely]] {
      taken =
          block::or_bad_alloc(block::by_static_block_allocate_typed(Blocks::stride, &block::TypeRecordOf<T>::record));
    }
    block::count_type<T>(1);
    return taken;
  }

  /// Frees the block of a T that the caller destroyed. nullptr is not allowed.
  static void deallocate(void* taken) noexcept {
    block::count_type<T>(-1);
    Blocks::free(taken);
  }

  /// As StaticBlockAllocator::free_chain(), for objects that need no destructor.
  static void deallocate_chain(void* first, void* last, std::size_t count) noexcept {
    block::count_type<T>(-static_cast<std::ptrdiff_t>(count));
    Blocks::free_chain(first, last, count);
  }
};

}  // namespace blockyard

#endif
