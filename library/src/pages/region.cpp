#include "pages/region.hpp"

#include <algorithm>
#include <array>

#include "base/pages.hpp"
#include "heap/bound.hpp"
#include "heap/settings.hpp"

namespace blockyard::heap {

constinit Region region;

namespace {

constexpr std::size_t largest_alignment = std::size_t{1} << 30;

// A process whose address space is limited starts threads, loads libraries and maps files beside the heap: so much
// stays for that, a stack of the default size and a quarter more. Not below the smallest region, where a program
// would get ENOMEM though the C library serves it.
constexpr std::size_t room_beside = std::size_t{10} << 20;
constexpr std::size_t smallest_region = std::size_t{8} << 20;

// Address space between the region's end and what the system maps for others, which comes down from there. Most
// processes have 40 TiB free in one stretch. ThreadSanitizer, and some 64-bit systems, leave far less.
constexpr std::size_t most_room_above = std::size_t{16} << 40;

// Where address space is not limited the region grows by larger steps than are wanted, for fewer system calls.
constexpr std::size_t least_growth = std::size_t{32} << 20;

// Address space of which a first part is mapped.
struct Window {
  char* base = nullptr;
  std::size_t mapped = 0;

  bool cover(std::size_t bytes, std::size_t step) {
    if (bytes <= mapped) {
      return true;
    }
    const std::size_t more = (bytes - mapped + step - 1) / step * step;
    if (!base::reserve_pages_at(base + mapped, more)) {
      return false;
    }
    mapped += more;
    return true;
  }
};

struct Table {
  std::size_t bytes_per_slice = 0;
  Window window;
};

enum TableIndex : std::uint8_t { owners, remote_frees, slabs, pages, class_map, table_count };
constinit std::array<Table, table_count> tables{{
    {sizeof(std::uint32_t), {}},
    {sizeof(RemoteFrees), {}},
    {sizeof(Slab), {}},
    {pages_per_slice * sizeof(PageTag), {}},
    {sizeof(std::uint8_t), {}},
}};

constexpr std::size_t small_table_step = std::size_t{64} << 10;
constexpr std::size_t large_table_step = std::size_t{1} << 20;

// `beside`: so much must then be left for others. It is asked for together with the region's new end: by itself, it
// would be missing for a moment to a thread that maps something, also where the region then does not grow.
bool map_up_to(std::size_t bytes, std::size_t table_step, std::size_t beside = 0) {
  for (Table& table : tables) {
    if (!table.window.cover((bytes >> slice_shift) * table.bytes_per_slice, table_step)) {
      return false;
    }
  }
  const std::size_t before = std::max(region.mapped(), never_mapped);
  char* const end = region.base + before;
  if (!base::reserve_pages_at(end, bytes - before + beside)) {
    return false;
  }
  if (beside != 0) {
    base::release_pages(region.base + bytes, beside);
  }
  __atomic_store_n(&region.units, bytes / block_alignment, __ATOMIC_RELEASE);
  __atomic_store_n(&region.bytes, bytes, __ATOMIC_SEQ_CST);
  // Once the new end is known: who asks for the other kind of pages meanwhile does so up to the end that it knows.
  const auto ask_for = [&](bool huge) {
    (huge ? base::advise_huge_pages : base::advise_small_pages)(end, bytes - before);
  };
  const bool huge = settings.asks_for_huge_pages();
  ask_for(huge);
  if (settings.asks_for_huge_pages() != huge) {
    ask_for(!huge);
  }
  return true;
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

// Lays the heap table, the tables and the region out, in this order, so that the region's end lies nearest to what the
// system maps for others, with `room_above` bytes between them. Nothing is mapped yet.
bool lay_out(std::size_t bytes, std::size_t room_above) {
  const auto rounded = [](std::size_t size) {
    return (size + large_table_step - 1) / large_table_step * large_table_step;
  };
  const std::size_t alignment = bytes >= 16 * largest_alignment ? largest_alignment : chunk_bytes;
  std::size_t before = heap_table_bytes;
  for (const Table& table : tables) {
    before += rounded((bytes >> slice_shift) * table.bytes_per_slice);
  }
  before = (before + alignment - 1) & ~(alignment - 1);
  auto* place = static_cast<char*>(base::find_free_space(before + bytes + room_above, alignment));
  if (place == nullptr) {
    return false;
  }
  region.base = place + before;
  region.most_bytes = bytes;
  region.alignment = alignment;
  region.heaps = place;
  place += heap_table_bytes;
  for (Table& table : tables) {
    table.window = {place, 0};
    place += rounded((bytes >> slice_shift) * table.bytes_per_slice);
  }
  return true;
}

void forget_layout() {
  for (Table& table : tables) {
    if (table.window.mapped != 0) {
      base::release_pages(table.window.base, table.window.mapped);
      table.window.mapped = 0;
    }
  }
}

// Whether the region began without a limit: then room stays beside it from its first growth on.
constinit bool began_without_limit = false;

bool map_first(bool small) {
  began_without_limit =
      !base::address_space_is_limited() && map_up_to(small ? chunk_bytes : least_growth, large_table_step);
  return began_without_limit || map_up_to(chunk_bytes, small_table_step);
}

}  // namespace

bool reserve_region(bool small) {
  if (region.mapped() != 0) {
    return true;
  }
  // Where the largest region has no place, one with less room above or a smaller one may have.
  constexpr std::size_t least_place = std::size_t{1} << 30;
  std::size_t bytes = largest_region;
  std::size_t room_above = most_room_above;
  while (!lay_out(bytes, room_above) || !map_first(small)) {
    forget_layout();
    if (room_above > bytes) {
      room_above /= 4;
      continue;
    }
    bytes /= 2;
    room_above = bytes;
    if (bytes < least_place) {
      return false;
    }
  }
  // Zero pages are valid tables: an untouched Owner, RemoteFrees, Slab or PageTag reads as all zero, which means
  // "nothing here".
  region.owners = reinterpret_cast<Atomic<std::uint32_t>*>(tables[owners].window.base);
  region.remote_frees = reinterpret_cast<RemoteFrees*>(tables[remote_frees].window.base);
  region.slabs = reinterpret_cast<Slab*>(tables[slabs].window.base);
  region.pages = reinterpret_cast<PageTag*>(tables[pages].window.base);
  char* const classes = tables[class_map].window.base;
  region.class_map = reinterpret_cast<Atomic<std::uint8_t>*>(classes);
  region.class_map_of_zero =
      reinterpret_cast<std::uintptr_t>(classes) - (reinterpret_cast<std::uintptr_t>(region.base) >> slice_shift);
  return true;
}

bool grow_region(std::size_t bytes) {
  const std::size_t before = region.mapped();
  if (bytes <= before) {
    return true;
  }
  if (bytes > region.most_bytes) {
    return false;
  }
  const std::size_t ahead =
      std::min(std::max(bytes, before + std::max(least_growth, before / 8 & ~(chunk_bytes - 1))), region.most_bytes);
  // No limit is read: a program in a sandbox that allows few system calls may map, but not ask.
  return map_up_to(ahead, large_table_step, room_beside) ||
         map_up_to(bytes, small_table_step, began_without_limit || before >= smallest_region ? room_beside : 0);
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
