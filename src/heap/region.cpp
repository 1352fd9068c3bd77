#include "heap/region.hpp"

#include "base/pages.hpp"

namespace blockyard::heap {

constinit Region region;

namespace {

// The reserve, the slabs cut in advance and as much again: below that a program gets ENOMEM where the C library would
// serve.
constexpr std::size_t smallest_region = std::size_t{8} << 20;
constexpr std::size_t largest_alignment = std::size_t{1} << 30;

std::size_t table_bytes(std::size_t bytes) {
  const std::size_t granules = bytes >> granule_shift;
  return granules * (sizeof(std::uint32_t) + sizeof(std::uint8_t) + sizeof(Directory) + sizeof(Slab)) +
         (bytes >> page_shift) * sizeof(PageTag);
}

// One write a page of the entries [first, first + count). The entries are the caller's, so nobody else writes them.
template <class Entry>
void populate_entries(Entry* table, std::size_t first, std::size_t count) {
  constexpr std::size_t entries_per_page = page_bytes / sizeof(Entry);
  for (std::size_t entry = first; entry < first + count; entry += entries_per_page) {
    touch_without_change(&table[entry]);
  }
  touch_without_change(&table[first + count - 1]);
}

// Gives back the pages of the table that hold entries [first, end) only.
template <class Entry>
void discard_entries(Entry* table, std::size_t first, std::size_t end) {
  const auto begin = (reinterpret_cast<std::uintptr_t>(table + first) + page_bytes - 1) & ~(page_bytes - 1);
  const auto behind = reinterpret_cast<std::uintptr_t>(table + end) & ~(page_bytes - 1);
  if (begin < behind) {
    base::discard_pages(reinterpret_cast<void*>(begin), behind - begin);
  }
}

}  // namespace

bool reserve_region() {
  if (region.bytes != 0) {
    return true;
  }
  for (std::size_t bytes = largest_region; bytes >= smallest_region; bytes /= 2) {
    // Aligning a reservation costs as much address space again, which only a small region would miss.
    const std::size_t alignment = bytes >= 16 * largest_alignment ? largest_alignment : chunk_bytes;
    void* const base = base::reserve_pages(bytes, alignment);
    if (base == nullptr) {
      continue;
    }
    char* const tables = static_cast<char*>(base::reserve_pages(table_bytes(bytes), page_bytes));
    if (tables == nullptr) {
      base::release_pages(base, bytes);
      continue;
    }
    // Zero pages are valid tables: an untouched Owner, Directory, Slab or PageTag reads as all zero, which means
    // "nothing here".
    const std::size_t granules = bytes >> granule_shift;
    char* table = tables;
    region.owners = reinterpret_cast<Atomic<std::uint32_t>*>(table);
    table += granules * sizeof(std::uint32_t);
    region.directory = reinterpret_cast<Directory*>(table);
    table += granules * sizeof(Directory);
    region.slabs = reinterpret_cast<Slab*>(table);
    table += granules * sizeof(Slab);
    region.pages = reinterpret_cast<PageTag*>(table);
    table += (bytes >> page_shift) * sizeof(PageTag);
    region.base = static_cast<char*>(base);
    region.rows = reinterpret_cast<Atomic<std::uint8_t>*>(table);
    region.rows_of_zero =
        reinterpret_cast<std::uintptr_t>(table) - (reinterpret_cast<std::uintptr_t>(base) >> granule_shift);
    region.alignment = alignment;
    region.bytes = bytes;
    return true;
  }
  return false;
}

void populate_tables(std::uint32_t first_page, std::uint32_t pages) {
  const std::size_t granule = first_page / pages_per_granule;
  const std::size_t granules = (first_page + pages - 1) / pages_per_granule - granule + 1;
  populate_entries(region.owners, granule, granules);
  populate_entries(region.rows, granule, granules);
  populate_entries(region.directory, granule, granules);
  populate_entries(region.slabs, granule, granules);
  populate_entries(region.pages, first_page, pages);
}

// What slabs left is zero already but for what nobody reads before it is written anew: the slabs' own records, which
// fresh_slab fills in, and links of the ready stacks, where whoever reads one of a slab that was popped meanwhile finds
// the stack changed.
void discard_tables(std::uint32_t first_page, std::uint32_t pages) {
  const std::size_t granule = (first_page + pages_per_granule - 1) / pages_per_granule;
  const std::size_t end = (first_page + pages) / pages_per_granule;
  discard_entries(region.owners, granule, end);
  discard_entries(region.rows, granule, end);
  discard_entries(region.directory, granule, end);
  discard_entries(region.slabs, granule, end);
  discard_entries(region.pages, first_page + 1, std::size_t{first_page} + pages - 1);
}

}  // namespace blockyard::heap
