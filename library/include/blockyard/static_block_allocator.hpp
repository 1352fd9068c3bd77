/// StaticBlockAllocator: process-wide pools of blocks, one per (size, alignment), found at compile time.
///
/// Bounds: as BlockAllocator, per thread. Allocate: one thread-local load more than BlockAllocator. Free on the thread
/// whose slab it is: one thread-local load and a compare more, no atomic read-modify-write, no lock; free on any other
/// thread: one compare-and-swap. A lock is taken when a thread allocates its first block, needs a further page, or
/// ends. Overhead: a thread that allocates holds 8 KiB of tables, and of each size that it uses at least one slab, of
/// which the touched part is resident.
///
/// Sizes that need the same stride (block_slab.hpp) share a pool. The pools live in libblockyard: shared objects that
/// link it share them. Nothing is ever destroyed: static constructors and destructors, atexit handlers, thread_local
/// destructors and forked children may allocate and free (in a child, what other threads of the parent held stays
/// theirs and is not used again). When a thread ends, its slabs go to the next thread that starts, or page by page to
/// threads that need memory.
///
/// Bound on what remote frees leave unused: an eighth of a slab that its owner regards as full; and everything freed
/// remotely while the owner neither allocates blocks of that size nor ends.
///
/// At most 383 different strides above 512 bytes in one process; further ones fail to allocate.
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
#include "blockyard/detail/type_record.hpp"

namespace blockyard::block {

/// A slot is a stride's place in the tables of threads: strides up to 512 bytes have theirs fixed.
inline constexpr std::size_t small_stride = 512;
inline constexpr std::size_t slot_count = 512;

/// What the fast path sees of a thread: for each slot the slab that blocks come from.
struct ThreadBlocks {
  Slab* current[slot_count];
};

extern "C" {
/// The calling thread's; one that is always out of blocks until the thread allocates its first.
extern BY_API constinit thread_local ThreadBlocks* by_thread_blocks __attribute__((tls_model("initial-exec")));

BY_API void* by_static_block_allocate(std::size_t stride) noexcept;
/// The same for an object of this type, which leak reports then tell from others of its size.
BY_API void* by_static_block_allocate_typed(std::size_t stride, TypeRecord* type) noexcept;
BY_API void by_static_block_free_slow(Slab* slab) noexcept;
BY_API void by_static_block_free_remote(void* block, Slab* slab) noexcept;
BY_API void by_static_block_free_checked(void* block, std::size_t stride) noexcept;
BY_API void by_static_block_free_chain(std::size_t stride, void* first, void* last, std::size_t count) noexcept;
/// Allocate and free of any stride out of line, for what is rare: small code instead of few nanoseconds. The first
/// throws std::bad_alloc.
BY_API void* by_static_block_take(std::size_t stride);
BY_API void by_static_block_give(void* block, std::size_t stride) noexcept;
/// The slot of a stride above small_stride; 0 when there are too many.
BY_API std::uint32_t by_static_block_slot(std::size_t stride) noexcept;
}

/// Caches the slot of one large stride, a copy in each shared object.
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

/// Blocks of `Size` bytes at `Alignment`, from any thread. All members are static; an object of this type is empty.
template <std::size_t Size, std::size_t Alignment = alignof(std::max_align_t)>
class StaticBlockAllocator {
  static_assert(Alignment != 0 && (Alignment & (Alignment - 1)) == 0, "an alignment is a power of two");
  static_assert(Size <= block::max_block_bytes, "blocks of more than 1 MiB belong to a general heap");
  static_assert(Alignment <= block::max_alignment, "alignments above 32 KiB are not supported");

 public:
  /// Bytes from one block to the next.
  static constexpr std::size_t stride = block::stride_of(Size, Alignment);

  /// A block, contents unspecified; nullptr when memory is exhausted.
  [[nodiscard]] static void* allocate() noexcept {
    void* const ready = take_ready();
    return ready != nullptr ? ready : block::by_static_block_allocate(stride);
  }

  /// A block that lies ready for this thread, else nullptr: the fast path of allocate().
  [[nodiscard, gnu::always_inline]] static void* take_ready() noexcept {
#if defined(BLOCKYARD_CHECKED) && BLOCKYARD_CHECKED
    return nullptr;
#else
    return block::slab_take(block::by_thread_blocks->current[block::slot_of<stride>()], stride);
#endif
  }

  /// Gives back a block of this size, allocated on whichever thread. nullptr is not a block.
  static void free(void* taken) noexcept {
#if defined(BLOCKYARD_CHECKED) && BLOCKYARD_CHECKED
    block::by_static_block_free_checked(taken, stride);
#else
    block::Slab* const slab = block::slab_of(taken, block::slab_mask_of(block::slab_shift_of(stride)));
    if (slab->owner.load(std::memory_order_relaxed) == block::by_thread_blocks) [[likely]] {
      if (!block::slab_put(slab, taken, stride)) [[unlikely]] {
        block::by_static_block_free_slow(slab);
      }
    } else {
      block::by_static_block_free_remote(taken, slab);
    }
#endif
  }

  /// Gives back `count` blocks at once, O(1): linked from `first` to `last` by block::set_chain_next(). Any thread is
  /// handed them again, in that order, before it cuts fresh memory. Their pages stay held until by_static_block_trim().
  static void free_chain(void* first, void* last, std::size_t count) noexcept {
    block::by_static_block_free_chain(stride, first, last, count);
  }

  /// All threads together.
  [[nodiscard]] static by_block_statistics statistics() noexcept {
    by_block_statistics result;
    by_static_block_get_statistics(stride, &result);
    return result;
  }
};

/// Objects of type T in static blocks: constructs and destroys. Takes no space in a container.
template <class T>
class TypedStaticBlockAllocator {
 public:
  using Blocks = StaticBlockAllocator<sizeof(T), alignof(T)>;

  /// A new T. Throws std::bad_alloc when memory is exhausted, and whatever the constructor throws: nothing is allocated
  /// then.
  template <class... Arguments>
  [[nodiscard]] static T* create(Arguments&&... arguments) {
    void* const taken = allocate();
    try {
      return ::new (taken) T(std::forward<Arguments>(arguments)...);
    } catch (...) {
      deallocate(taken);
      throw;
    }
  }

  /// Destroys an object that create() made, on whichever thread. nullptr is a no-op.
  static void destroy(T* object) noexcept {
    if (object != nullptr) {
      std::destroy_at(object);
      deallocate(object);
    }
  }

  /// A block for a T that the caller constructs. Throws std::bad_alloc.
  [[nodiscard]] static void* allocate() {
    void* taken = Blocks::take_ready();
    if (taken == nullptr) [[unlikely]] {
      taken = block::by_static_block_allocate_typed(Blocks::stride, &block::TypeRecordOf<T>::record);
      if (taken == nullptr) {
        block::throw_bad_alloc();
      }
    }
    block::count_type<T>(1);
    return taken;
  }

  /// As allocate(), of what lies ready for this thread; else nullptr.
  [[nodiscard, gnu::always_inline]] static void* take_ready() noexcept {
    void* const taken = Blocks::take_ready();
    if (taken != nullptr) {
      block::count_type<T>(1);
    }
    return taken;
  }

  static void deallocate(void* taken) noexcept {
    block::count_type<T>(-1);
    Blocks::free(taken);
  }

  /// See StaticBlockAllocator::free_chain: blocks of objects that need no destructor.
  static void deallocate_chain(void* first, void* last, std::size_t count) noexcept {
    block::count_type<T>(-static_cast<std::ptrdiff_t>(count));
    Blocks::free_chain(first, last, count);
  }
};

}  // namespace blockyard

#endif
