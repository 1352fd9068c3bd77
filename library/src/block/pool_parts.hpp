// The parts of a pool's slow paths: lists of slabs and pages, what becomes of a slab that fills or empties, and chains
// of freed blocks. For the files of this folder. All functions are for the owner, as in pool.hpp.
#pragma once

#include <algorithm>
#include <cstddef>

#include "block/pool.hpp"

namespace blockyard::block {

inline std::size_t page_bytes(Index page) { return slice_bytes << slice(page).order; }
inline Index page_end(Index page) { return page + (Index{1} << slice(page).order); }
inline Index slab_step(const Pool* pool) { return Index{1} << (pool->shift - slab_shift); }
inline std::byte* slab_start(const Slab* record) { return address_of(index_of(record)); }
inline bool is_real(const Pool* pool, const Slab* record) {
  return record != &by_block_no_slab && record != &pool->loose;
}

inline std::byte* cut_end(const Pool* pool, const Slab* record) {
  return slab_start(record) + std::size_t{pool->capacity} * pool->stride;
}

/// Bytes of a slab in front of which every live block lies: all of it where a stretch of freed blocks is cut again.
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

/// Enters a slab behind `before`, which is in a list.
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
  Slice& first = slice(page);
  first.previous = 0;
  first.next = pool->pages;
  if (first.next != 0) {
    slice(first.next).previous = page;
  }
  pool->pages = page;
  pool->page_count += 1;
  pool->held_bytes += page_bytes(page);
  pool->peak_held_bytes = std::max<std::size_t>(pool->peak_held_bytes, pool->held_bytes);
}

inline void page_unlink(Pool* pool, Index page) {
  Slice& first = slice(page);
  (first.previous != 0 ? slice(first.previous).next : pool->pages) = first.next;
  if (first.next != 0) {
    slice(first.next).previous = first.previous;
  }
  pool->page_count -= 1;
  pool->held_bytes -= page_bytes(page);
}

/// A pool may keep this much free memory whatever its peak.
inline constexpr std::size_t least_kept_bytes = std::size_t{256} << 10;

inline bool keeps_too_much(const Pool* pool) {
  return pool->free_page_bytes > std::max(pool->peak_held_bytes / 2, least_kept_bytes);
}

// --- slabs.cpp ---

/// Updates the pool's peak. O(1).
void note_peak(Pool* pool);

/// Gives a page without blocks back.
void page_release(Pool* pool, Index page);

/// The last live block of a slab was freed: the slab returns to its bump pointer.
void slab_emptied(Pool* pool, Slab* record);

/// A full slab has free blocks again: it becomes partial.
void slab_reopen(Pool* pool, Slab* record);

/// Takes remotely freed blocks into a slab that is full, partial or current. O(1).
void slab_receive(Pool* pool, Slab* record, const base::RemoteBatch& batch);

/// All blocks of the slab are live, except too few to use it: it leaves the lists until enough are freed.
void slab_full(Pool* pool, Slab* record);

// --- chains.cpp ---

/// Counts blocks of chains as handed out or freed.
void count_chained(Pool* pool, std::size_t gone);

/// Hands the next blocks of the chain in use to the fast path. O(1).
void fill_loose(Pool* pool);

/// Takes the newest chain into use. False when there is none.
bool take_chain(Pool* pool);

/// From now on no chain is in use.
void end_loose(Pool* pool);

/// Has `loose` serve a magazine, the pool's own or one that another thread handed on. False when there is none.
bool take_magazine(Pool* pool);

/// `loose` is current no more: the slab that was before it is, if there was one.
void leave_loose(Pool* pool);

}  // namespace blockyard::block
