/// Slabs: what every block allocator cuts blocks from, and the inline fast paths that all of them share. Included by
/// block_allocator.hpp, static_block_allocator.hpp and link.hpp, and by library/src/block; programs include the first
/// two.
///
/// A *slab* is 32 KiB of address space, more for blocks above 4 KiB, that holds blocks of one stride. A *page* is what
/// an allocator takes from the operating system at a time: one slab at first, then twice as much each time, up to 4
/// MiB. All pages lie in one *window* of address space, which is reserved once per process. Beside it lies a flat table
/// with one BlockSlab per 32 KiB. So a shift and an addition find a block's slab, blocks have no header, and 32 bits
/// name any block (link.hpp).
///
/// Allocate: pop the slab's free list; else cut at the bump pointer; else one out-of-line call. Free: extend the
/// stretch that the bump pointer cuts, if the block is adjacent to its end; else push; and one out-of-line call when
/// the count of live blocks reaches a limit. Neither path has an atomic read-modify-write or a lock.
#ifndef BLOCKYARD_DETAIL_BLOCK_SLAB_HPP
#define BLOCKYARD_DETAIL_BLOCK_SLAB_HPP

#include "blockyard/detail/cpp20.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "blockyard/detail/relaxed.hpp"
#include "blockyard/detail/visibility.h"

namespace blockyard::block {

struct Pool;
struct ThreadBlocks;

/// Blocks are cut at multiples of 4 bytes.
inline constexpr std::size_t unit = 4;
/// Smallest stride: a freed block holds a pointer.
inline constexpr std::size_t least_stride = sizeof(void*);
/// Bytes of the smallest slab, as a power of two: 32 KiB fits the first-level cache (docs/design/containers.md).
inline constexpr unsigned slab_shift = 15;
/// Largest block, bytes.
inline constexpr std::size_t max_block_bytes = std::size_t{1} << 20;
/// Largest alignment of a block, bytes.
inline constexpr std::size_t max_alignment = std::size_t{1} << slab_shift;

/// The *stride*: bytes from one block to the next, which is the size rounded up so that each block is aligned. Slabs
/// are aligned to more than any block, so blocks of equal stride can share a pool.
constexpr std::size_t stride_of(std::size_t size, std::size_t alignment) {
  const std::size_t step = alignment < unit ? unit : alignment;
  const std::size_t stride = (size + (step - 1)) / step * step;
  return stride < least_stride ? (least_stride > step ? least_stride : step) : stride;
}

/// Bytes of a slab of blocks of this stride, as a power of two. It has at least 8 blocks, so at most an eighth is left
/// over.
constexpr unsigned slab_shift_of(std::size_t stride) {
  unsigned shift = slab_shift;
  while ((std::size_t{1} << shift) < stride * 8) {
    ++shift;
  }
  return shift;
}

/// The record of one slab, a cache line. Only the owner writes it.
struct alignas(64) BlockSlab {
  void* free = nullptr;                ///< freed blocks, linked through their first word
  std::byte* bump = nullptr;           ///< where the next block is cut
  std::byte* end = nullptr;            ///< where cutting ends
  std::atomic<ThreadBlocks*> owner{};  ///< the thread whose frees take the fast path
  Relaxed<std::uint32_t> excess;       ///< live blocks above `floor`; free calls the pool when it reaches 0
  Relaxed<std::uint32_t> floor;        ///< 0, or in a full slab the number of live blocks at which it is used again
  std::atomic<Pool*> pool{};           ///< the pool that the slab serves
  std::uint32_t next = 0;              ///< in one of the pool's lists; an index into the table, 0 is none
  std::uint32_t previous = 0;
};
static_assert(sizeof(BlockSlab) == 64, "one cache line, and slab_of() scales by it");
inline constexpr unsigned slab_record_shift = 6;

/// Where all blocks of the process lie. Written once, before the first block exists.
struct Window {
  std::uintptr_t table_bias = 0;  ///< where the record for address 0 would be; slab_of() adds to it
  std::byte* base = nullptr;      ///< first byte; near links count from here
  std::size_t bytes = 0;          ///< of the window
};

extern "C" BY_API Window by_block_window;
/// A slab that never has a block. An allocator without a slab points to it, so that the fast path needs no test.
extern "C" BY_API BlockSlab by_block_no_slab;

/// The bits of an address that slab_of() keeps, for slabs of 2^shift bytes. For a size known only at run time, a mask
/// costs one instruction where two shifts cost six.
constexpr std::int32_t slab_mask_of(unsigned shift) {
  return -(std::int32_t{1} << (shift - (slab_shift - slab_record_shift)));
}

/// The slab of a block.
inline BlockSlab* slab_of(const void* block, std::int32_t mask) {
  const std::uintptr_t scaled = reinterpret_cast<std::uintptr_t>(block) >> (slab_shift - slab_record_shift);
  return reinterpret_cast<BlockSlab*>(by_block_window.table_bias +
                                      (scaled & static_cast<std::uintptr_t>(std::intptr_t{mask})));
}

/// Whether an address lies in the window, as every block does.
inline bool in_window(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(by_block_window.base) <
         by_block_window.bytes;
}

// The link of a freed block. Copied, since a block may be aligned to less than a pointer.
inline void* link_of(const void* block) {
  void* next;
  std::memcpy(&next, block, sizeof next);
  return next;
}
inline void set_link(void* block, void* next) { std::memcpy(block, &next, sizeof next); }

/// A *near link* names a block in 32 bits: its distance from the window's base in units of 2^shift bytes; 0 is none.
/// Units of 8 bytes reach the whole window. Blocks whose stride is no multiple of 8 need units of 4, and lie in its
/// first 16 GiB.
constexpr unsigned near_shift_of(std::size_t stride) { return stride % 8 == 0 ? 3 : 2; }
inline constexpr std::size_t near_reach = std::size_t{16} << 30;

inline std::uint32_t near_link(const void* block, unsigned shift) {
  return static_cast<std::uint32_t>(
      static_cast<std::size_t>(static_cast<const std::byte*>(block) - by_block_window.base) >> shift);
}
inline void* near_target(std::uint32_t link, unsigned shift) {
  return by_block_window.base + (std::size_t{link} << shift);
}

/// Links a block to the next of a chain that will be freed at once (free_chain): a near link in its first word, as
/// NearLink is one.
inline void set_chain_next(void* block, const void* next, std::size_t stride) {
  const std::uint32_t link = next == nullptr ? 0 : near_link(next, near_shift_of(stride));
  std::memcpy(block, &link, sizeof link);
}

/// A block of `slab`, or nullptr if it has none left. For the owner. Cutting is the likely branch: it fills containers.
[[gnu::always_inline]] inline void* slab_take(BlockSlab* slab, std::size_t stride) {
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
      __builtin_unreachable();  // spares callers a test for nullptr
    }
    return block;
  }
  return nullptr;
}

/// Puts a block back. For the owner. False when the caller must call the pool. Blocks freed in the order of their
/// addresses join the stretch that is cut next; their memory is not touched.
[[nodiscard, gnu::always_inline]] inline bool slab_put(BlockSlab* slab, void* block, std::size_t stride) {
  if (block == slab->end) {
    // Not slab->end + stride: that would wait for the store of the free before.
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
