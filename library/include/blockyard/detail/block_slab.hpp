/// Slabs: what every block allocator cuts blocks from, and the fast paths that all of them share.
///
/// A *slab* is 32 KiB of address space (more for blocks above 4 KiB) that holds blocks of one size. A *page* is what an
/// allocator takes from the operating system at a time: one slab at first, then twice as much each time up to 4 MiB.
/// All pages lie in one *window* of address space, reserved once a process; beside it stands a flat table with one Slab
/// for each 32 KiB. So a block's slab is found by a shift and an addition, blocks carry no header, and any
/// block is known by 32 bits (see link.hpp).
///
/// Allocate: pop the slab's free list, else cut at the bump pointer, else one out-of-line call. Free: extend the run
/// that the bump pointer cuts if the block is next to it, else push; count down, and when the count reaches 0 one
/// out-of-line call. No atomic read-modify-write and no lock on either path.
///
/// This header is the inside of the allocators: programs include block_allocator.hpp or static_block_allocator.hpp.
#ifndef BLOCKYARD_DETAIL_BLOCK_SLAB_HPP
#define BLOCKYARD_DETAIL_BLOCK_SLAB_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "blockyard/detail/visibility.h"

namespace blockyard::block {

struct Pool;
struct ThreadBlocks;

/// Blocks are cut at multiples of 4 bytes.
inline constexpr std::size_t unit = 4;
/// Smallest block: a freed one holds a pointer.
inline constexpr std::size_t least_stride = sizeof(void*);
/// Bytes of the smallest slab, as a power of two. 32 KiB fits the first-level cache of the processors of these years;
/// 64 KiB made a walk over blocks freed and taken again in random order slower, 16 KiB made no difference.
inline constexpr unsigned slab_shift = 15;
/// Largest block; a slab of such blocks has 8 of them, as every slab has at least.
inline constexpr std::size_t max_block_bytes = std::size_t{1} << 20;
/// Largest alignment of a block.
inline constexpr std::size_t max_alignment = std::size_t{1} << slab_shift;

/// Bytes from one block to the next: the size rounded up so that each block is aligned. Blocks of equal stride share
/// a pool: slabs are aligned far beyond any block, so the stride alone says how blocks are aligned.
constexpr std::size_t stride_of(std::size_t size, std::size_t alignment) {
  const std::size_t step = alignment < unit ? unit : alignment;
  const std::size_t stride = (size + (step - 1)) / step * step;
  return stride < least_stride ? (least_stride > step ? least_stride : step) : stride;
}

/// Bytes of a slab of blocks of this stride, as a power of two: at least 8 blocks, so that at most an eighth is left
/// over.
constexpr unsigned slab_shift_of(std::size_t stride) {
  unsigned shift = slab_shift;
  while ((std::size_t{1} << shift) < stride * 8) {
    ++shift;
  }
  return shift;
}

/// A number with one writer that others may read for their statistics: plain loads and stores, no ordering.
template <class T>
class Relaxed {
 public:
  constexpr Relaxed() = default;
  constexpr Relaxed(T value) : value_(value) {}  // NOLINT: converts like the number that it is
  Relaxed(const Relaxed&) = delete;
  operator T() const { return value_.load(std::memory_order_relaxed); }  // NOLINT
  T operator=(T value) {                                                 // NOLINT
    value_.store(value, std::memory_order_relaxed);
    return value;
  }
  void operator=(const Relaxed&) = delete;
  void operator+=(T value) { *this = static_cast<T>(*this + value); }
  void operator-=(T value) { *this = static_cast<T>(*this - value); }

 private:
  std::atomic<T> value_{};
};

/// The record of one slab, a cache line. Only the owner writes it, but for `remote`.
struct alignas(64) Slab {
  void* free = nullptr;                 ///< freed blocks, linked through their first word
  std::byte* bump = nullptr;            ///< the next block to cut: never cut yet, or of a run freed in order
  std::byte* end = nullptr;             ///< where cutting ends
  std::atomic<ThreadBlocks*> owner{};   ///< the thread state that may free here without further ado
  Relaxed<std::uint32_t> excess;        ///< live blocks above `floor`; at 0 the pool wants to hear of it
  Relaxed<std::uint32_t> floor;         ///< 0, or for a full slab the live blocks at which it is worth using again
  std::atomic<std::uint64_t> remote{};  ///< blocks freed by other threads (library/src/block/remote_frees.hpp)
  std::atomic<Pool*> pool{};            ///< the pool this slab serves
  std::uint32_t next = 0;               ///< in the pool's list of its kind, an index into the table, 0 is none
  std::uint32_t previous = 0;
};
static_assert(sizeof(Slab) == 64, "one cache line, and slab_of() scales by it");
inline constexpr unsigned slab_record_shift = 6;

/// Where the blocks of this process lie. Written once, before the first block exists.
struct Window {
  std::uintptr_t table_bias = 0;  ///< address of the table's record for address 0: slab_of() adds to it
  std::byte* base = nullptr;      ///< first byte; near links count from here
  std::size_t bytes = 0;
};

extern "C" BY_API Window by_block_window;
/// Has no blocks and never will: what an allocator points at before its first block, so that the fast path needs no
/// test.
extern "C" BY_API Slab by_block_no_slab;

/// What slab_of() needs to know of slabs of 2^shift bytes: which bits of an address stay. Where the size is known only
/// at run time, a mask costs one instruction where two shifts by a variable cost six.
constexpr std::int32_t slab_mask_of(unsigned shift) {
  return -(std::int32_t{1} << (shift - (slab_shift - slab_record_shift)));
}

inline Slab* slab_of(const void* block, std::int32_t mask) {
  const std::uintptr_t scaled = reinterpret_cast<std::uintptr_t>(block) >> (slab_shift - slab_record_shift);
  return reinterpret_cast<Slab*>(by_block_window.table_bias +
                                 (scaled & static_cast<std::uintptr_t>(std::intptr_t{mask})));
}

/// Whether an address can be a block at all.
inline bool in_window(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(by_block_window.base) <
         by_block_window.bytes;
}

// By copying: a block of 12 bytes may lie across the place of a pointer.
inline void* link_of(const void* block) {
  void* next;
  std::memcpy(&next, block, sizeof next);
  return next;
}
inline void set_link(void* block, void* next) { std::memcpy(block, &next, sizeof next); }

/// A *near link* is a block in 32 bits: its distance from the window's base in units of 2^shift bytes, 0 for none.
/// Blocks whose stride is a multiple of 8 are counted in eights, which reaches the whole window; others in fours, and
/// lie in its first 16 GiB.
constexpr unsigned near_shift_of(std::size_t stride) { return stride % 8 == 0 ? 3 : 2; }
inline constexpr std::size_t near_reach = std::size_t{16} << 30;

inline std::uint32_t near_link(const void* block, unsigned shift) {
  return static_cast<std::uint32_t>(
      static_cast<std::size_t>(static_cast<const std::byte*>(block) - by_block_window.base) >> shift);
}
inline void* near_target(std::uint32_t link, unsigned shift) {
  return by_block_window.base + (std::size_t{link} << shift);
}

/// Links two blocks of a chain that is about to be freed at once (free_chain), as NearLink does: by the first word of
/// the first.
inline void set_chain_next(void* block, const void* next, std::size_t stride) {
  const std::uint32_t link = next == nullptr ? 0 : near_link(next, near_shift_of(stride));
  std::memcpy(block, &link, sizeof link);
}

/// A block of `slab`, or nullptr when it has none left. The owner's. Cutting is laid out as the straight way: it fills
/// containers.
[[gnu::always_inline]] inline void* slab_take(Slab* slab, std::size_t stride) {
  if (void* const block = slab->free; block != nullptr) [[unlikely]] {
    void* const next = link_of(block);
    __builtin_prefetch(next, 1);
    slab->free = next;
    slab->excess += 1;
    return block;
  }
  if (std::byte* const block = slab->bump; block != slab->end) [[likely]] {
    slab->bump = block + stride;
    slab->excess += 1;
    if (block == nullptr) {
      __builtin_unreachable();  // spares callers the test for a slab that has none left
    }
    return block;
  }
  return nullptr;
}

/// Puts a block back. The owner's. False when the pool wants to hear of it. Blocks freed in the order of their
/// addresses join the run that is cut next, and are not touched: a million 32-byte blocks freed so would be 32 MB to
/// bring in.
[[nodiscard, gnu::always_inline]] inline bool slab_put(Slab* slab, void* block, std::size_t stride) {
  if (block == slab->end) {
    // Not slab->end + stride: that would wait for the store of the free before this one.
    slab->end = static_cast<std::byte*>(block) + stride;
  } else {
    set_link(block, slab->free);
    slab->free = block;
  }
  const std::uint32_t excess = slab->excess - 1;
  slab->excess = excess;
  return excess != 0;
}

}  // namespace blockyard::block

#endif
