// Reserves the window and hands out runs of it.
#include "block/window.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "base/bits.hpp"
#include "base/pages.hpp"
#include "pages/page_heap.hpp"

namespace blockyard::block {

extern "C" {
constinit Window by_block_window;
constinit BlockSlab by_block_no_slab;
}

constinit base::Mutex records_lock;

namespace {

// What near links reach: 2^32 units of 8 bytes.
constexpr std::size_t full_bytes = std::size_t{32} << 30;
constexpr std::size_t least_bytes = std::size_t{64} << 20;
constexpr Index largest_run = Index{1} << max_order;
constexpr Index near_end = near_reach / granule_bytes;

constinit BlockSlab* slabs = nullptr;
constinit Granule* granules = nullptr;
// Its pages are granules.
constinit pages::Region region;
constinit std::atomic<Index> fresh{0};  // granules from here on were never handed out
constinit std::byte* record_next = nullptr;
constinit std::byte* record_end = nullptr;
// [0]: in the part that links in units of 4 bytes reach; [1]: in the rest, once the first is used up.
constinit std::array<pages::PageHeap, 2> window_runs{pages::PageHeap(region), pages::PageHeap(region)};

pages::PageHeap& runs_of(Index first) { return first < near_end ? window_runs[0] : window_runs[1]; }

}  // namespace

bool window_open() {
  const std::lock_guard lock(records_lock);
  if (slabs != nullptr) {
    return true;
  }
  for (std::size_t bytes = full_bytes; bytes >= least_bytes; bytes /= 2) {
    const std::size_t count = bytes / granule_bytes;
    const std::size_t slab_table = count * sizeof(BlockSlab);
    const std::size_t granule_table = count * sizeof(Granule);
    const std::size_t tables = slab_table + granule_table + count * sizeof(pages::PageTag);
    void* const space = base::reserve_space(bytes, largest_run * granule_bytes);
    if (space == nullptr) {
      continue;
    }
    void* const table = base::reserve_pages(tables);
    if (table == nullptr) {
      base::release_pages(space, bytes);
      continue;
    }
    slabs = static_cast<BlockSlab*>(table);
    granules = reinterpret_cast<Granule*>(static_cast<std::byte*>(table) + slab_table);
    region.pages = reinterpret_cast<pages::PageTag*>(static_cast<std::byte*>(table) + slab_table + granule_table);
    by_block_window.base = static_cast<std::byte*>(space);
    by_block_window.bytes = bytes;
    by_block_window.table_bias = reinterpret_cast<std::uintptr_t>(table) -
                                 (reinterpret_cast<std::uintptr_t>(space) >> slab_shift << slab_record_shift);
    // The first run stays out of use: link 0 and index 0 mean none. So does the first far one: runs would merge there.
    window_runs[0].open(largest_run, std::min(static_cast<Index>(count), near_end));
    if (count > near_end) {
      window_runs[1].open(near_end + largest_run, static_cast<Index>(count));
    }
    return true;
  }
  return false;
}

Index window_take(unsigned order, bool huge, bool near) {
  if (!window_open()) {
    return 0;
  }
  const Index length = Index{1} << order;
  const auto take = [=](pages::PageHeap& runs) {
    return runs.allocate(length, length, pages::Prefer::decommitted, pages::PageState::used_slab).first;
  };
  // Runs that may lie anywhere take the near part last, once others were ever in use.
  Index first = near || window_fresh() <= near_end ? 0 : take(window_runs[1]);
  if (first == 0) {
    first = take(window_runs[0]);
  }
  if (first == 0 && !near) {
    first = take(window_runs[1]);
  }
  if (first == 0) {
    return 0;
  }
  for (Index seen = window_fresh(); seen < first + length;) {
    fresh.compare_exchange_weak(seen, first + length, std::memory_order_relaxed);
  }
  const std::size_t bytes = granule_bytes << order;
  if (!base::commit_pages(address_of(first), bytes)) {
    runs_of(first).free(first, pages::PageState::free_decommitted);
    return 0;
  }
  if (huge) {
    base::advise_huge_pages(address_of(first), bytes);
  }
  return first;
}

void window_give(Index first, unsigned order, bool huge) {
  const std::size_t bytes = granule_bytes << order;
  if (!base::discard_pages(address_of(first), bytes)) {
    std::memset(address_of(first), 0, bytes);  // who takes them next counts on it
  }
  if (huge) {
    base::advise_small_pages(address_of(first), bytes);
  }
  runs_of(first).free(first, pages::PageState::free_decommitted);
}

Index window_fresh() { return fresh.load(std::memory_order_relaxed); }

void window_lock() {
  records_lock.lock();
  for (pages::PageHeap& runs : window_runs) {
    runs.lock().lock();
  }
}

void window_unlock(bool in_child) {
  for (pages::PageHeap& runs : window_runs) {
    in_child ? runs.lock().unlock_in_child() : runs.lock().unlock();
  }
  records_lock.unlock();
}

void* window_record(std::size_t bytes) {
  constexpr std::size_t chunk = std::size_t{256} << 10;
  bytes = base::align_up(bytes, std::size_t{64});
  const std::lock_guard lock(records_lock);
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

Granule& granule(Index index) { return granules[index]; }

BlockSlab& slab(Index index) { return slabs[index]; }

Index index_of(const BlockSlab* record) { return static_cast<Index>(record - slabs); }

}  // namespace blockyard::block
