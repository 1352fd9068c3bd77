// The window: the stretch of address space that holds every block of the process, and the flat tables beside it.
//
// Address space is handed out in *runs* of 2^order granules (a granule is 32 KiB, the smallest slab) by a binary buddy:
// O(orders). The tables are reserved with the window and come into memory as they are touched: 96 bytes a granule.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/threads.hpp"
#include "blockyard/detail/block_slab.hpp"

namespace blockyard::block {

/// A granule's number, counted from the window's base; also the number of the slab that begins there. 0 is none.
using Index = std::uint32_t;

inline constexpr std::size_t granule_bytes = std::size_t{1} << slab_shift;
/// Largest run: 8 MiB, the slab of the largest blocks.
inline constexpr unsigned max_order = 8;

/// Where in its pool a slab stands.
enum class Place : std::uint8_t {
  unused,   ///< not cut yet
  current,  ///< blocks are taken from it
  partial,  ///< in the list of slabs with room
  empty,    ///< in the list of slabs without any block
  full,     ///< in no list
};

/// What is known of a granule beyond its Slab: touched on slow paths only.
struct alignas(32) Granule {
  std::atomic<Index> inbox_next;  ///< next slab in an inbox
  Index page;                     ///< first granule of its page, set for each slab that is cut
  Relaxed<Place> place;
  std::uint8_t order;       ///< in a page's first granule: its size
  std::uint8_t free_order;  ///< in a free run's first granule: its order + 1, else 0
  bool huge;                ///< in a page's first granule: huge pages were asked for
  std::uint32_t busy;       ///< in a page's first granule: slabs that are neither empty nor unused
  Index uncut;              ///< in a page's first granule: the next slab never cut, the page's end if none
  Index next;               ///< in a page's first granule: next page of the pool; in a free run's: next free run
  Index previous;
};
static_assert(sizeof(Granule) == 32);

/// Guards everything process-wide: the window's runs, the store of pools, parked threads. Never taken on a fast path.
extern base::Mutex world;

/// Reserves the window unless that is done; false when even a small one is refused. Takes `world`.
bool window_open();

/// A committed run of 2^order granules, or 0; with `near` within near_reach. Takes `world`. At most one call into the
/// operating system.
Index window_take(unsigned order, bool huge, bool near);

/// Gives a run and its memory back. Takes `world`. At most two calls into the operating system.
void window_give(Index first, unsigned order, bool huge);

/// Zeroed memory for the allocators' own records, never given back. nullptr when memory is exhausted. Takes `world`.
void* window_record(std::size_t bytes);

Granule& granule(Index index);
Slab& slab(Index index);
Index index_of(const Slab* slab);

/// First granule that was never handed out.
Index window_fresh();

/// Calls `visit` with each slab that is cut now. Any thread.
template <class Visit>
void window_each_slab(Visit&& visit) {
  const Index end = window_fresh();
  for (Index index = 1; index < end; ++index) {
    if (granule(index).place != Place::unused) {
      visit(index);
    }
  }
}

inline std::byte* address_of(Index index) { return by_block_window.base + std::size_t{index} * granule_bytes; }

/// 32-bit links within a slab: what a slab's word holds (remote_frees.hpp). 0 is no block.
inline std::uint32_t slab_link_from(Index slab, const void* block) {
  return static_cast<std::uint32_t>(static_cast<std::size_t>(static_cast<const std::byte*>(block) - address_of(slab)) /
                                    unit) +
         1;
}
inline void* slab_link_to(Index slab, std::uint32_t link) {
  return link == 0 ? nullptr : address_of(slab) + std::size_t{link - 1} * unit;
}

}  // namespace blockyard::block
