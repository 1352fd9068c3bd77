// The window: the address range that holds every block of the process, and the flat tables beside it.
//
// Address space is handed out in *runs* of 2^order granules by a page heap (pages/page_heap.hpp), O(1). (A *granule* is
// 32 KiB, the smallest slab.) The tables are reserved with the window and become resident as they are touched: 120
// bytes per granule.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/remote_list.hpp"
#include "base/threads.hpp"
#include "blockyard/detail/block_slab.hpp"

namespace blockyard::block {

/// A granule's index in the window, and the index of the slab that begins there. 0 is none.
using Index = std::uint32_t;

inline constexpr std::size_t granule_bytes = std::size_t{1} << slab_shift;
/// Largest run: 8 MiB, the slab of the largest blocks.
inline constexpr unsigned max_order = 8;

/// What a pool uses a slab for.
enum class SlabUse : std::uint8_t {
  unused,   ///< not cut yet
  current,  ///< blocks are taken from it
  partial,  ///< in the list of slabs with free blocks
  empty,    ///< in the list of slabs without live blocks
  full,     ///< in no list
};

using RemoteList = base::RemoteList<>;
using PendingStack = base::PendingStack<>;

/// The record of a granule beyond its BlockSlab, used on slow paths only.
struct Granule {
  RemoteList::Word remote;          ///< blocks of the slab that other threads freed, or a mark (give_back.hpp)
  RemoteList::Oldest oldest;        ///< end of that list
  PendingStack::Word pending_next;  ///< next slab in its owner's stack of slabs with such blocks
  Relaxed<Index> page;              ///< first granule of its page, set for each slab that is cut
  Relaxed<SlabUse> state;
  Relaxed<std::uint8_t> order;       ///< in a page's first granule: its size
  Relaxed<bool> huge;                ///< in a page's first granule: huge pages were asked for
  Relaxed<std::uint8_t> slab_order;  ///< in a page's first granule: the size of its slabs
  std::uint8_t busy;                 ///< in a page's first granule: slabs that are neither empty nor unused
  Index uncut;                       ///< in a page's first granule: the first slab never cut, or the page's end
  Index next;                        ///< in a page's first granule: next page of the pool
  Index previous;
};
static_assert(sizeof(Granule) == 40);

/// Guards the opening of the window, its records and the store of unused pools. Never taken on a fast path.
extern base::Mutex records_lock;

/// Reserves the window, once. False when the system refuses even a small one.
bool window_open();

/// A committed run of 2^order granules, or 0. With `near`, it lies within near_reach. One call into the operating
/// system, two with `huge`.
Index window_take(unsigned order, bool huge, bool near);

/// Gives a run and its memory back. One call into the operating system, two with `huge`.
void window_give(Index first, unsigned order, bool huge);

/// Zeroed memory for the allocators' own records, which is never given back. nullptr when exhausted.
void* window_record(std::size_t bytes);

Granule& granule(Index index);
BlockSlab& slab(Index index);
Index index_of(const BlockSlab* slab);

/// The first granule that was never handed out. Any thread.
Index window_fresh();

/// Calls `visit` with each slab that is cut now. Any thread. O(granules).
template <class Visit>
void window_each_slab(Visit&& visit) {
  const Index end = window_fresh();
  for (Index index = 1; index < end; ++index) {
    if (granule(index).state != SlabUse::unused) {
      visit(index);
    }
  }
}

/// Holds all of its locks: across a fork.
void window_lock();
void window_unlock(bool in_child);

inline std::byte* address_of(Index index) { return by_block_window.base + std::size_t{index} * granule_bytes; }

/// The numbers of blocks in a slab's remote list. 0 is no block.
inline std::uint32_t slab_link_from(Index slab, const void* block) {
  return static_cast<std::uint32_t>(static_cast<std::size_t>(static_cast<const std::byte*>(block) - address_of(slab)) /
                                    unit) +
         1;
}
inline void* slab_link_to(Index slab, std::uint32_t link) {
  return link == 0 ? nullptr : address_of(slab) + std::size_t{link - 1} * unit;
}

}  // namespace blockyard::block
