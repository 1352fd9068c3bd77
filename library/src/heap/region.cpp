#include "heap/region.hpp"

#include <algorithm>

#include "base/pages.hpp"
#include "heap/bound.hpp"

namespace blockyard::heap {

constinit Region region;

namespace {

// The reserve, the slabs cut in advance and as much again: below that a program gets ENOMEM where the C library would
// serve.
constexpr std::size_t smallest_region = std::size_t{8} << 20;
constexpr std::size_t largest_alignment = std::size_t{1} << 30;

std::size_t table_bytes(std::size_t bytes) {
  const std::size_t slices = bytes >> slice_shift;
  const std::size_t exact =
      slices * (sizeof(std::uint32_t) + sizeof(std::uint8_t) + sizeof(RemoteFrees) + sizeof(Slab)) +
      (bytes >> page_shift) * sizeof(PageTag);
  return (exact + page_bytes - 1) & ~(page_bytes - 1);
}

// What is populated at once is two chunks at most, of whose slices, 257 where they begin within one, 64 are described
// by a page of the longest entries.
constexpr std::size_t most_table_pages = 2 * chunk_bytes / slice_bytes / (page_bytes / sizeof(Slab)) + 1;

// One write a page of the entries [first, first + count). The entries are the caller's, so nobody else writes them.
template <class Entry>
void populate_entries(Entry* table, std::size_t first, std::size_t count) {
  constexpr std::size_t entries_per_page = page_bytes / sizeof(Entry);
  Bound<Loop::table_pages> table_pages(most_table_pages);
  for (std::size_t entry = first; entry < first + count; entry += entries_per_page) {
    table_pages.turn();
    touch_without_change(&table[entry]);
  }
  touch_without_change(&table[first + count - 1]);
}

// Address space for a region of so many bytes, a multiple of chunk_bytes, and for its tables.
struct Reservation {
  char* base = nullptr;
  char* tables = nullptr;
  std::size_t bytes = 0;
  std::size_t alignment = 0;

  bool acquire(std::size_t wanted) {
    bytes = wanted;
    // Aligning a reservation costs as much address space again, which only a small region would miss.
    alignment = bytes >= 16 * largest_alignment ? largest_alignment : chunk_bytes;
    base = static_cast<char*>(base::reserve_pages(bytes, alignment));
    if (base == nullptr) {
      return false;
    }
    tables = static_cast<char*>(base::reserve_pages(table_bytes(bytes), page_bytes));
    if (tables == nullptr) {
      base::release_pages(base, bytes);
    }
    return tables != nullptr;
  }
  void release() const {
    base::release_pages(tables, table_bytes(bytes));
    base::release_pages(base, bytes);
  }
};

// Of the room that was found, what the region takes: stacks of threads, 8 MiB each by default, libraries and the
// program's own mappings want some too, and what the region has taken it keeps.
std::size_t part_of(std::size_t room) {
  constexpr std::size_t a_stack = std::size_t{12} << 20;
  const std::size_t left = std::max(room / 6, std::min(a_stack, room / 3));
  return std::max((room - left) & ~(chunk_bytes - 1), smallest_region);
}

// Finds how much there is where the largest region cannot be had, by trying: halves down to one that fits, then in
// steps of a thirty-second of that up to the one that did not. At most 21 tries, of two to eight system calls.
bool acquire_part(Reservation* found) {
  std::size_t fitting = largest_region / 2;
  while (!found->acquire(fitting)) {
    fitting /= 2;
    if (fitting < smallest_region) {
      return false;
    }
  }
  found->release();
  for (std::size_t step = fitting / 2; step >= std::max(fitting / 32, chunk_bytes); step /= 2) {
    if (found->acquire(fitting + step)) {
      found->release();
      fitting += step;
    }
  }
  return found->acquire(part_of(fitting));
}

}  // namespace

bool reserve_region() {
  if (region.bytes != 0) {
    return true;
  }
  Reservation found;
  if (!found.acquire(largest_region) && !acquire_part(&found)) {
    return false;
  }
  // Zero pages are valid tables: an untouched Owner, RemoteFrees, Slab or PageTag reads as all zero, which means
  // "nothing here".
  const std::size_t slices = found.bytes >> slice_shift;
  char* table = found.tables;
  region.owners = reinterpret_cast<Atomic<std::uint32_t>*>(table);
  table += slices * sizeof(std::uint32_t);
  region.remote_frees = reinterpret_cast<RemoteFrees*>(table);
  table += slices * sizeof(RemoteFrees);
  region.slabs = reinterpret_cast<Slab*>(table);
  table += slices * sizeof(Slab);
  region.pages = reinterpret_cast<PageTag*>(table);
  table += (found.bytes >> page_shift) * sizeof(PageTag);
  region.base = found.base;
  region.class_map = reinterpret_cast<Atomic<std::uint8_t>*>(table);
  region.class_map_of_zero =
      reinterpret_cast<std::uintptr_t>(table) - (reinterpret_cast<std::uintptr_t>(found.base) >> slice_shift);
  region.alignment = found.alignment;
  region.bytes = found.bytes;
  return true;
}

void populate_tables(std::uint32_t first_page, std::uint32_t pages) {
  const std::size_t slice = first_page / pages_per_slice;
  const std::size_t slices = (first_page + pages - 1) / pages_per_slice - slice + 1;
  populate_entries(region.owners, slice, slices);
  populate_entries(region.class_map, slice, slices);
  populate_entries(region.remote_frees, slice, slices);
  populate_entries(region.slabs, slice, slices);
  populate_entries(region.pages, first_page, pages);
}

}  // namespace blockyard::heap
