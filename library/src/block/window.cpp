// Reserves the window and hands out runs of it.
#include "block/window.hpp"

#include <cstring>
#include <mutex>
#include <new>

#include "base/bits.hpp"
#include "base/index_list.hpp"
#include "base/pages.hpp"

namespace blockyard::block {

extern "C" {
constinit Window by_block_window;
constinit Slab by_block_no_slab;
}

constinit base::Mutex world;

namespace {

// What near links reach: 2^32 units of 8 bytes.
constexpr std::size_t full_bytes = std::size_t{32} << 30;
constexpr std::size_t least_bytes = std::size_t{64} << 20;
constexpr std::size_t run_bytes = slice_bytes << max_order;

constinit Slab* slabs = nullptr;
constinit Slice* slices = nullptr;
constinit Relaxed<Index> fresh;  // slices from here on were never handed out
constinit Index fresh_end = 0;
constexpr Index near_end = near_reach / slice_bytes;
// [0]: in the part that links in units of 4 bytes reach; [1]: in the rest.
constinit Index free_runs[2][max_order + 1] = {};
constinit std::byte* record_next = nullptr;
constinit std::byte* record_end = nullptr;

bool open_locked() {
  if (slabs != nullptr) {
    return true;
  }
  for (std::size_t bytes = full_bytes; bytes >= least_bytes; bytes /= 2) {
    const std::size_t count = bytes / slice_bytes;
    const std::size_t slab_table = count * sizeof(Slab);
    const std::size_t tables = slab_table + count * sizeof(Slice);
    void* const space = base::reserve_space(bytes, run_bytes);
    if (space == nullptr) {
      continue;
    }
    void* const table = base::reserve_pages(tables);
    if (table == nullptr) {
      base::release_pages(space, bytes);
      continue;
    }
    slabs = static_cast<Slab*>(table);
    slices = reinterpret_cast<Slice*>(static_cast<std::byte*>(table) + slab_table);
    by_block_window.base = static_cast<std::byte*>(space);
    by_block_window.bytes = bytes;
    by_block_window.table_bias = reinterpret_cast<std::uintptr_t>(table) -
                                 (reinterpret_cast<std::uintptr_t>(space) >> slab_shift << slab_record_shift);
    fresh = 1 << max_order;  // the first run stays out of use: link 0 and index 0 mean none
    fresh_end = static_cast<Index>(count);
    return true;
  }
  return false;
}

Index& free_list(Index first, unsigned order) { return free_runs[first < near_end ? 0 : 1][order]; }

void list_run(Index first, unsigned order) {
  slices[first].free_order = static_cast<std::uint8_t>(order + 1);
  base::list_push(free_list(first, order), first, slice);
}

void unlist_run(Index first, unsigned order) {
  slices[first].free_order = 0;
  base::list_remove(free_list(first, order), first, slice);
}

// The least order from `order` on that has a free run; above max_order if none has.
unsigned find_order(unsigned order, unsigned part) {
  while (order <= max_order && free_runs[part][order] == 0) {
    ++order;
  }
  return order;
}

Index take_run(unsigned order, bool near) {
  // Runs that may lie anywhere take the near part last.
  unsigned part = near ? 0 : 1;
  unsigned found = find_order(order, part);
  if (found > max_order && !near) {
    part = 0;
    found = find_order(order, part);
  }
  Index first;
  if (found <= max_order) {
    first = free_runs[part][found];
    unlist_run(first, found);
  } else {
    if (fresh_end - fresh < Index{1} << max_order || (near && fresh >= near_end)) {
      return 0;
    }
    found = max_order;
    first = fresh;
    fresh += Index{1} << max_order;
  }
  while (found > order) {
    --found;
    list_run(first + (Index{1} << found), found);
  }
  return first;
}

void give_run(Index first, unsigned order) {
  while (order < max_order) {
    const Index buddy = first ^ (Index{1} << order);
    if (slices[buddy].free_order != order + 1) {
      break;
    }
    unlist_run(buddy, order);
    first &= ~(Index{1} << order);
    ++order;
  }
  list_run(first, order);
}

}  // namespace

bool window_open() {
  const std::lock_guard lock(world);
  return open_locked();
}

Index window_take(unsigned order, bool huge, bool near) {
  const std::lock_guard lock(world);
  if (!open_locked()) {
    return 0;
  }
  const Index first = take_run(order, near);
  if (first == 0) {
    return 0;
  }
  const std::size_t bytes = slice_bytes << order;
  if (!base::commit_pages(address_of(first), bytes)) {
    give_run(first, order);
    return 0;
  }
  if (huge) {
    base::advise_huge_pages(address_of(first), bytes);
  }
  return first;
}

void window_give(Index first, unsigned order, bool huge) {
  const std::size_t bytes = slice_bytes << order;
  // Outside the lock: no other thread uses these pages yet.
  if (!base::discard_pages(address_of(first), bytes)) {
    std::memset(address_of(first), 0, bytes);  // who takes them next counts on it
  }
  if (huge) {
    base::advise_small_pages(address_of(first), bytes);
  }
  const std::lock_guard lock(world);
  give_run(first, order);
}

Index window_fresh() { return fresh; }

void* window_record(std::size_t bytes) {
  constexpr std::size_t chunk = std::size_t{256} << 10;
  bytes = base::align_up(bytes, std::size_t{64});
  const std::lock_guard lock(world);
  if (static_cast<std::size_t>(record_end - record_next) < bytes) {
    const std::size_t room = base::align_up(bytes, chunk);
    void* const pages = base::reserve_pages(room);
    if (pages == nullptr) {
      return nullptr;
    }
    record_next = static_cast<std::byte*>(pages);
    record_end = record_next + room;
  }
  void* const record = record_next;
  record_next += bytes;
  return record;
}

Slice& slice(Index index) { return slices[index]; }

Slab& slab(Index index) { return slabs[index]; }

Index index_of(const Slab* record) { return static_cast<Index>(record - slabs); }

}  // namespace blockyard::block
