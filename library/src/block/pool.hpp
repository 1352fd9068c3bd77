// A pool: the slabs and pages of one block size and one owner, and every path that is not fast.
//
// A pool serves a BlockAllocator (no `thread`), or one size of one thread (`thread` set): then blocks also come back
// through each slab's remote word and the pool's inbox. All functions are the owner's; where another thread holds a
// pool whose owner has ended, it holds `parked_lock` (static_pools.cpp).
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
  std::uint32_t reopen = 0;        ///< a full slab with this few live blocks goes back among those with room
  std::uint32_t wake = 0;          ///< as many remote frees of a full slab announce it
  std::uint32_t slot = 0;          ///< of a static pool
  bool holds_pages = false;        ///< while a walk over its pages is under way, none is given back
  std::uint8_t next_order = 0;     ///< size of the page to take next
  Index partial = 0;               ///< slabs with room
  Index empty = 0;                 ///< slabs without blocks, in bump order
  Index pages = 0;
  Index cutting = 0;             ///< the page with slabs never cut
  std::uint32_t busy_slabs = 0;  ///< slabs that are neither empty nor unused
  Relaxed<std::size_t> page_count;
  Relaxed<std::size_t> held_bytes;
  std::size_t peak_held_bytes = 0;
  Relaxed<std::size_t> free_page_bytes;  ///< of the pages without a busy slab
  Relaxed<std::size_t> peak_cut_bytes;   ///< most bytes of blocks cut in busy slabs at once
  void* chain = nullptr;                 ///< chains of freed blocks (free_chain): the first block of the newest
  std::size_t chained_blocks = 0;        ///< blocks in chains, the one that `loose` serves included
  Slab loose;                            ///< serves blocks of a chain to the fast path as if it were a slab
  std::uint32_t loose_rest = 0;          ///< near link: what of that chain `loose` does not hold yet
  std::atomic<Index> inbox{0};           ///< slabs announced by remote frees
  Watch* watch = nullptr;                ///< set in observed processes: every call is checked (watch.hpp)
  Pool* next_free = nullptr;             ///< in the store of pools that serve nobody
};

/// A pool for blocks of `stride` bytes whose fast path reads `*current`; nullptr when memory is exhausted.
Pool* pool_create(std::size_t stride, Slab** current);

/// Gives every page back, and the pool to the store.
void pool_destroy(Pool* pool);

/// After the fast path found nothing: a block, or nullptr when memory is exhausted.
void* pool_allocate_slow(Pool* pool);

/// After slab_put() said that the pool wants to hear of it.
void pool_free_slow(Pool* pool, Slab* slab);

/// Frees a block of any slab of this pool: fast path and slow path.
void pool_free(Pool* pool, void* block);

/// See BlockAllocator::free_chain.
void pool_free_chain(Pool* pool, void* first, void* last, std::size_t count);

void pool_reset(Pool* pool);

/// Gives back chained blocks, then every page without a live block.
void pool_trim(Pool* pool);

/// Takes in what other threads have announced.
void pool_drain_inbox(Pool* pool);

/// Moves up to `limit` pages with room from a pool whose owner has ended; how many it moved.
unsigned pool_adopt(Pool* to, Pool* from, unsigned limit);

/// Adds the figures of a pool that is not static to `sum`.
void pool_add_statistics(const Pool* pool, by_block_statistics* sum);

/// The invariant walker: counts, links and places of every slab and page. O(blocks).
bool pool_invariants_hold(const Pool* pool);

/// Takes the newest chain of this pool's static slot, or nullptr (static_pools.cpp).
void* static_chain_take(std::uint32_t slot);
/// Tells that `count` blocks of a static slot's chains were handed out.
void static_chain_used(std::uint32_t slot, std::size_t count);
/// Moves pages of ended threads to this static pool; whether there were any (static_pools.cpp).
bool static_adopt(Pool* pool);

inline std::uint32_t slab_live(const Slab& record) { return record.floor + record.excess; }

/// The words of a chain's blocks, near links: word 0 links the blocks of a chain; word 1 of its first block links the
/// chains.
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
