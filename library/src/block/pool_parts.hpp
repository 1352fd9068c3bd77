// The parts that a pool's slow paths are made of: lists of slabs and pages, what becomes of a slab that fills or
// empties, and chains of freed blocks. Inside library/src/block; all functions are the owner's, as in pool.hpp.
#pragma once

#include <algorithm>
#include <cstddef>

#include "block/pool.hpp"
#include "block/remote_frees.hpp"

namespace blockyard::block {

inline std::size_t page_bytes(Index page) { return granule_bytes << granule(page).order; }
inline Index page_end(Index page) { return page + (Index{1} << granule(page).order); }
inline Index slab_step(const Pool* pool) { return Index{1} << (pool->shift - slab_shift); }
inline std::byte* slab_start(const Slab* record) { return address_of(index_of(record)); }
inline bool is_real(const Pool* pool, const Slab* record) {
  return record != &by_block_no_slab && record != &pool->loose;
}

inline std::byte* cut_end(const Pool* pool, const Slab* record) {
  return slab_start(record) + std::size_t{pool->capacity} * pool->stride;
}

/// Bytes of a slab below which every live block lies, free or not: all of it where a run of freed blocks is cut anew.
inline std::size_t cut_bytes(const Pool* pool, const Slab* record) {
  const std::byte* const high = record->end == cut_end(pool, record) ? record->bump : cut_end(pool, record);
  return static_cast<std::size_t>(high - slab_start(record));
}

inline void rewind(const Pool* pool, Slab* record) {
  record->free = nullptr;
  record->bump = slab_start(record);
  record->end = cut_end(pool, record);
}

inline void list_push(Index& head, Index index) {
  Slab& record = slab(index);
  record.previous = 0;
  record.next = head;
  if (head != 0) {
    slab(head).previous = index;
  }
  head = index;
}

/// Behind `before`, which is in a list.
inline void list_insert_after(Index before, Index index) {
  Slab& record = slab(index);
  record.previous = before;
  record.next = slab(before).next;
  if (record.next != 0) {
    slab(record.next).previous = index;
  }
  slab(before).next = index;
}

inline void list_remove(Index& head, Index index) {
  Slab& record = slab(index);
  (record.previous != 0 ? slab(record.previous).next : head) = record.next;
  if (record.next != 0) {
    slab(record.next).previous = record.previous;
  }
}

inline void page_link(Pool* pool, Index page) {
  Granule& first = granule(page);
  first.previous = 0;
  first.next = pool->pages;
  if (first.next != 0) {
    granule(first.next).previous = page;
  }
  pool->pages = page;
  pool->page_count += 1;
  pool->held_bytes += page_bytes(page);
  pool->peak_held_bytes = std::max<std::size_t>(pool->peak_held_bytes, pool->held_bytes);
}

inline void page_unlink(Pool* pool, Index page) {
  Granule& first = granule(page);
  (first.previous != 0 ? granule(first.previous).next : pool->pages) = first.next;
  if (first.next != 0) {
    granule(first.next).previous = first.previous;
  }
  pool->page_count -= 1;
  pool->held_bytes -= page_bytes(page);
}

/// A pool keeps this much free without further ado.
inline constexpr std::size_t least_kept_bytes = std::size_t{256} << 10;

inline bool keeps_too_much(const Pool* pool) {
  return !pool->holds_pages && pool->free_page_bytes > std::max(pool->peak_held_bytes / 2, least_kept_bytes);
}

// --- slabs.cpp ---

/// Brings the pool's peak up to date. O(1).
void note_peak(Pool* pool);

/// Whether a slab of the page lies in an inbox, or is on its way there. O(slabs of the page).
bool page_has_announced_slab(const Pool* pool, Index page);

/// Gives a page without blocks back. A slab on its way to an inbox keeps its page: then nothing happens, and false.
bool page_release(Pool* pool, Index page);

/// The last block of a slab has come back: bump order again.
void slab_emptied(Pool* pool, Slab* record);

/// A full slab has room again: back among those with room.
void slab_reopen(Pool* pool, Slab* record);

/// Takes remotely freed blocks into a slab that is full, partial or current.
void slab_receive(Pool* pool, Slab* record, const RemoteList& list);

/// Every block of the slab is live, or on a list that is too short to be worth a look: out of sight until enough come
/// back.
void slab_full(Pool* pool, Slab* record);

// --- chains.cpp ---

/// Blocks of chains that are chained no longer.
void count_chained(Pool* pool, std::size_t gone);

/// Hands the next blocks of the chain in use to the fast path. O(1).
void fill_loose(Pool* pool);

/// Makes the newest chain the one in use; false when there is none.
bool take_chain(Pool* pool);

/// No chain is in use.
void end_loose(Pool* pool);

/// Frees what is left of the chain in use, and, of a pool that is not static, all others. O(blocks).
void free_chains(Pool* pool);

}  // namespace blockyard::block
