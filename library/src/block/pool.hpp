// A pool: the slabs and pages of one stride and one owner, and every path that is not fast.
//
// A pool serves a BlockAllocator (`thread` is null), or one size of one thread (`thread` is set). To the latter, blocks
// also come back through each slab's remote word and the pool's inbox. All functions are for the owner; another thread
// that uses the pool of an ended owner holds `parked_lock` (static_pools.cpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "block/window.hpp"
#include "blockyard/block.h"

namespace blockyard::block {

class Watch;

struct Pool {
  Slab** current = nullptr;        ///< where the fast path finds its slab
  ThreadBlocks* thread = nullptr;  ///< the owner of a static pool
  std::uint32_t stride = 0;        ///< bytes
  std::uint32_t shift = 0;         ///< bytes of a slab, as a power of two
  std::uint32_t capacity = 0;      ///< blocks of a slab
  std::uint32_t reopen = 0;        ///< a full slab with no more live blocks than this becomes partial
  std::uint32_t wake = 0;          ///< so many remote frees of a full slab announce it
  std::uint32_t slot = 0;          ///< of a static pool
  bool holds_pages = false;        ///< no page is given back, since a walk over the pages is under way
  std::uint8_t next_order = 0;     ///< size of the page to take next
  Index partial = 0;               ///< slabs with room
  Index empty = 0;                 ///< slabs without live blocks
  Index pages = 0;                 ///< all pages
  Index cutting = 0;               ///< the page with slabs that were never cut
  std::uint32_t busy_slabs = 0;    ///< slabs that are neither empty nor unused
  Relaxed<std::size_t> page_count;
  Relaxed<std::size_t> held_bytes;
  std::size_t peak_held_bytes = 0;
  Relaxed<std::size_t> free_page_bytes;  ///< bytes of the pages without a busy slab
  Relaxed<std::size_t> peak_cut_bytes;   ///< most bytes of blocks cut in busy slabs at once
  void* chain = nullptr;                 ///< chains of freed blocks (free_chain): the first block of the newest chain
  std::size_t chained_blocks = 0;        ///< blocks in chains, with the one that `loose` serves
  Slab loose;                            ///< serves blocks of a chain to the fast path as if it were a slab
  std::uint32_t loose_rest = 0;          ///< near link to the rest of that chain
  std::atomic<Index> inbox{0};           ///< slabs announced by remote frees
  Watch* watch = nullptr;                ///< set in watched processes (watch.hpp)
  Pool* next_free = nullptr;             ///< in the store of unused pools
};

/// A pool for blocks of `stride` bytes, whose fast path reads `*current`. nullptr when memory is exhausted.
Pool* pool_create(std::size_t stride, Slab** current);

/// Gives every page back, and the pool to the store.
void pool_destroy(Pool* pool);

/// After the fast path found nothing: a block, or nullptr when memory is exhausted.
void* pool_allocate_slow(Pool* pool);

/// After slab_put() returned false.
void pool_free_slow(Pool* pool, Slab* slab);

/// Frees a block of any slab of this pool: fast path and slow path.
void pool_free(Pool* pool, void* block);

/// See BlockAllocator::free_chain.
void pool_free_chain(Pool* pool, void* first, void* last, std::size_t count);

/// Frees all blocks. O(slabs).
void pool_reset(Pool* pool);

/// Frees chained blocks, then gives back every page without a live block. O(slabs, and chained blocks).
void pool_trim(Pool* pool);

/// Takes in what other threads have announced. O(announced slabs).
void pool_drain_inbox(Pool* pool);

/// Moves up to `limit` pages with free blocks from a pool whose owner has ended. How many it moved.
unsigned pool_adopt(Pool* to, Pool* from, unsigned limit);

/// Adds the figures of a pool without `thread` to `sum`. O(slabs).
void pool_add_statistics(const Pool* pool, by_block_statistics* sum);

/// The invariant walker: whether counts, links and places of all slabs and pages agree. O(blocks).
bool pool_invariants_hold(const Pool* pool);

/// Takes the newest chain of this pool's static slot, or nullptr (static_pools.cpp).
void* static_chain_take(std::uint32_t slot);
/// Counts `count` blocks of a static slot's chains as handed out.
void static_chain_used(std::uint32_t slot, std::size_t count);
/// Moves pages of ended threads to this static pool. Whether there were any (static_pools.cpp).
bool static_adopt(Pool* pool);

inline std::uint32_t slab_live(const Slab& record) { return record.floor + record.excess; }

/// The near links in a chain's blocks. Word 0 of each block links to the next one; word 1 of the first block links to
/// the next chain.
inline std::uint32_t chain_link(const void* block, unsigned word) {
  std::uint32_t link;
  std::memcpy(&link, static_cast<const std::byte*>(block) + word * sizeof link, sizeof link);
  return link;
}
inline void* chain_target(std::uint32_t link, std::size_t stride) {
  return link == 0 ? nullptr : near_target(link, near_shift_of(stride));
}
inline void* chain_next(const void* block, std::size_t stride) { return chain_target(chain_link(block, 0), stride); }
inline void* next_chain(const void* first, std::size_t stride) { return chain_target(chain_link(first, 1), stride); }
inline void set_next_chain(void* first, const void* chain, std::size_t stride) {
  set_chain_next(static_cast<std::byte*>(first) + sizeof(std::uint32_t), chain, stride);
}

}  // namespace blockyard::block
