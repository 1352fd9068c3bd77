// A pool: the slabs and pages of one stride and one owner, and every path that is not fast.
//
// A pool serves a BlockAllocator (`thread` is null), or one size of one thread (`thread` is set). To the latter, blocks
// also come back through each slab's remote list (base/remote_list.hpp). All functions are for the owner; another
// thread that uses the pool of an ended owner holds `parked_lock` (static_pools.cpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "block/window.hpp"
#include "blockyard/block.h"

namespace blockyard::block {

class Watch;

struct Pool {
  BlockSlab** current = nullptr;      ///< where the fast path finds its slab
  ThreadBlocks* thread = nullptr;     ///< the owner of a static pool
  std::uint32_t stride = 0;           ///< bytes
  std::uint32_t shift = 0;            ///< bytes of a slab, as a power of two
  std::uint32_t capacity = 0;         ///< blocks of a slab
  std::uint32_t reopen = 0;           ///< a full slab with no more live blocks than this becomes partial
  std::uint32_t magazine_blocks = 0;  ///< kept blocks of other threads' slabs that make a magazine; 0: none is kept
  std::uint32_t slot = 0;             ///< of a static pool
  std::uint8_t next_order = 0;        ///< size of the page to take next
  Index partial = 0;                  ///< slabs with room
  Index empty = 0;                    ///< slabs without live blocks
  Index pages = 0;                    ///< all pages
  Index cutting = 0;                  ///< the page with slabs that were never cut
  std::uint32_t busy_slabs = 0;       ///< slabs that are neither empty nor unused
  Relaxed<std::size_t> page_count;
  Relaxed<std::size_t> held_bytes;
  std::size_t peak_held_bytes = 0;
  Relaxed<std::size_t> free_page_bytes;  ///< bytes of the pages without a busy slab
  Relaxed<std::size_t> peak_cut_bytes;   ///< most bytes of blocks cut in busy slabs at once
  void* chain = nullptr;                 ///< chains of freed blocks (free_chain): the first block of the newest chain
  Relaxed<std::size_t> chained_blocks;   ///< blocks in chains, with the one that `chain_slab` serves
  /// Serves blocks of a chain, and kept ones, to the fast path as if it were a slab. Its `excess`, a signed number, is
  /// how many blocks of the chain were handed out, less the kept ones that were not.
  BlockSlab chain_slab;
  std::uint32_t chain_rest = 0;   ///< near link to the rest of that chain
  void* magazine = nullptr;       ///< kept blocks that `chain_slab` serves next, linked through their first word
  BlockSlab* held = nullptr;      ///< while `chain_slab` is current: the slab to go on with
  PendingStack::Word pending{0};  ///< slabs announced by remote frees
  Index taken = 0;                ///< those taken off that stack, whose lists were not adopted yet
  Watch* watch = nullptr;         ///< set in watched processes (watch.hpp)
  Pool* next_free = nullptr;      ///< in the store of unused pools
  const char* name = nullptr;     ///< what reports call it; guarded by `records_lock`, as the next
  Pool* next_named = nullptr;     ///< links all pools with a name
};

/// A pool for blocks of `stride` bytes, whose fast path reads `*current`. nullptr when memory is exhausted.
Pool* pool_create(std::size_t stride, BlockSlab** current);

/// Gives every page back, and the pool to the store.
void pool_destroy(Pool* pool);

/// After the fast path found nothing: a block, or nullptr when memory is exhausted.
void* pool_allocate_slow(Pool* pool);

/// After slab_put() returned false.
void pool_free_slow(Pool* pool, BlockSlab* slab);

/// Frees a block of any slab of this pool: fast path and slow path.
void pool_free(Pool* pool, void* block);

/// See BlockAllocator::free_chain.
void pool_free_chain(Pool* pool, void* first, void* last, std::size_t count);

/// Gives the pool a name for reports, or with nullptr takes it away. O(pools with a name).
void pool_set_name(Pool* pool, const char* name);

/// Writes a line for each pool with a name that holds live blocks. Any thread. O(such pools, slabs of the process).
void report_named_pools(int descriptor);

/// Frees all blocks. O(slabs).
void pool_reset(Pool* pool);

/// Frees chained blocks, then gives back every page without a live block. O(slabs, and chained blocks).
void pool_trim(Pool* pool);

/// Any thread: frees a block on its slab's remote list. Lock-free.
void pool_free_remote(void* block, BlockSlab* slab);

/// Keeps a block of another thread's slab: the next allocation returns it. False when the pool and its slot have as
/// many as they may.
bool pool_keep(Pool* pool, void* block);

/// Adopts the remote lists of at most `most` announced slabs. O(`most`).
void pool_adopt_lists(Pool* pool, std::size_t most);

/// Frees the blocks that the pool keeps, and those of chains in use. O(those).
void pool_free_chain_slab(Pool* pool);

/// Moves up to `limit` pages with free blocks from a pool whose owner has ended. How many it moved.
unsigned pool_adopt(Pool* to, Pool* from, unsigned limit);

/// Adds the peak and the pages of a pool to `sum`. Any thread.
void pool_add_held(const Pool* pool, by_block_statistics* sum);

/// Adds all figures of a pool without `thread` to `sum`. O(slabs).
void pool_add_statistics(const Pool* pool, by_block_statistics* sum);

/// The invariant walker: whether counts, links and states of all slabs and pages agree. O(blocks).
bool pool_invariants_hold(const Pool* pool);

/// Takes the newest chain of this pool's static slot, or nullptr (static_pools.cpp).
void* static_chain_take(std::uint32_t slot);
/// Counts `count` blocks of a static slot's chains as handed out.
void static_chain_used(std::uint32_t slot, std::size_t count);
/// Hands a magazine on to whatever thread allocates from the pool's slot next. False when enough wait already.
bool static_magazine_give(const Pool* pool, void* first);
/// Takes a magazine, or nullptr.
void* static_magazine_take(std::uint32_t slot);
/// Moves pages of ended threads to this static pool. Whether there were any (static_pools.cpp).
bool static_adopt(Pool* pool);

// --- what pool.cpp shares with chains.cpp and leaks.cpp ---

/// Freed blocks that their slabs count as live.
std::size_t waiting_blocks(const Pool* pool);

/// Counts blocks of chains as handed out or freed.
void count_chained(Pool* pool, std::size_t gone);

/// From now on no chain is in use.
void end_chain_slab(Pool* pool);

/// `chain_slab` is current no more: the slab that was before it is, if there was one.
void leave_chain_slab(Pool* pool);

/// The slab that the fast path takes from. Reports read it while the owner goes on, so it is written as here only.
inline BlockSlab* current_slab(const Pool* pool) {
  return std::atomic_ref(*pool->current).load(std::memory_order_relaxed);
}
inline void set_current_slab(const Pool* pool, BlockSlab* slab) {
  std::atomic_ref(*pool->current).store(slab, std::memory_order_relaxed);
}

inline Index slab_step(const Pool* pool) { return Index{1} << (pool->shift - slab_shift); }
/// The `floor` of a held slab: the current one, after few of its blocks came and went. Its count then is one higher
/// than `excess` alone would be, so that freeing the last block takes no call.
inline constexpr std::uint32_t held_floor = ~std::uint32_t{0};
inline std::uint32_t slab_live(const BlockSlab& record) { return record.floor + record.excess; }

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

/// Calls visit(block), which may free it, for a block and those that next_of(block) leads to. How many there were.
template <class NextOf, class Visit>
std::size_t for_each_linked(void* block, NextOf&& next_of, Visit&& visit) {
  std::size_t count = 0;
  for (; block != nullptr; ++count) {
    void* const next = next_of(block);
    visit(block);
    block = next;
  }
  return count;
}
template <class Visit>
std::size_t for_each_chained(void* first, std::size_t stride, Visit&& visit) {
  return for_each_linked(
      first, [=](const void* block) { return chain_next(block, stride); }, visit);
}

// --- what reports and tests ask of the process-wide pools (static_pools.cpp) ---

/// Adds all figures but the stride.
inline void add_statistics(by_block_statistics& sum, const by_block_statistics& one) {
  sum.live_blocks += one.live_blocks;
  sum.live_bytes += one.live_bytes;
  sum.peak_blocks += one.peak_blocks;
  sum.pages += one.pages;
  sum.held_bytes += one.held_bytes;
  sum.free_page_bytes += one.free_page_bytes;
}

/// The figures of a slot, all threads together, of slightly different moments. O(slabs of the process).
by_block_statistics static_slot_statistics(std::uint32_t slot, std::size_t stride);

/// The stride of a slot, bytes; 0 for an unused slot.
std::size_t static_stride(std::uint32_t slot);

/// Whether any thread ever had a block of the slot.
bool static_slot_in_use(std::uint32_t slot);

/// The invariant walker over the calling thread's pools. O(blocks).
bool static_invariants_hold();

}  // namespace blockyard::block
