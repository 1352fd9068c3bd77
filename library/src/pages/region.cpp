#include "pages/region.hpp"

#include <algorithm>

#include "base/bound.hpp"
#include "base/pages.hpp"

namespace blockyard::pages {

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

constexpr std::size_t small_table_step = std::size_t{64} << 10;
constexpr std::size_t large_table_step = std::size_t{1} << 20;

constexpr std::size_t rounded(std::size_t size) {
  return (size + large_table_step - 1) / large_table_step * large_table_step;
}

}  // namespace

bool Region::Table::cover(std::size_t slices, std::size_t step) {
  const std::size_t wanted = slices * bytes_per_slice;
  if (wanted > mapped) {
    const std::size_t more = (wanted - mapped + step - 1) / step * step;
    if (!base::reserve_pages_at(base + mapped, more)) {
      return false;
    }
    mapped += more;
  }
  return true;
}

// `room`: so much must then be left for others. It is asked for together with the region's new end: by itself, it would
// be missing for a moment to a thread that maps something, also where the region then does not grow.
bool Region::map_up_to(std::size_t wanted, std::size_t table_step, std::size_t room) {
  for (Table& table : tables) {
    if (!table.cover(wanted >> slice_shift, table_step)) {
      return false;
    }
  }
  const std::size_t before = std::max(mapped(), never_mapped);
  char* const end = base + before;
  if (!base::reserve_pages_at(end, wanted - before + room)) {
    return false;
  }
  if (room != 0) {
    base::release_pages(base + wanted, room);
  }
  __atomic_store_n(&units, wanted / block_alignment, __ATOMIC_RELEASE);
  __atomic_store_n(&bytes, wanted, __ATOMIC_SEQ_CST);
  // Once the new end is known: who asks for the other kind of pages meanwhile does so up to the end that it knows.
  const auto ask_for = [&](bool huge) {
    (huge ? base::advise_huge_pages : base::advise_small_pages)(end, wanted - before);
  };
  const bool huge = asks_for_huge_pages.load(std::memory_order_seq_cst);
  ask_for(huge);
  if (asks_for_huge_pages.load(std::memory_order_seq_cst) != huge) {
    ask_for(!huge);
  }
  return true;
}

// Lays the further table, the tables and the region out, in this order, so that the region's end lies nearest to what
// the system maps for others, with `room_above` bytes between them. Nothing is mapped yet.
bool Region::lay_out(std::size_t most, std::size_t bytes_beside, std::size_t room_above) {
  const std::size_t aligned = most >= 16 * largest_alignment ? largest_alignment : chunk_bytes;
  std::size_t before = bytes_beside;
  for (const Table& table : tables) {
    before += rounded((most >> slice_shift) * table.bytes_per_slice);
  }
  before = (before + aligned - 1) & ~(aligned - 1);
  auto* at = static_cast<char*>(base::find_free_space(before + most, aligned, room_above));
  if (at == nullptr) {
    return false;
  }
  base = at + before;
  most_bytes = most;
  alignment = aligned;
  beside = at;
  at += bytes_beside;
  for (Table& table : tables) {
    table.base = at;
    at += rounded((most >> slice_shift) * table.bytes_per_slice);
  }
  pages = reinterpret_cast<PageTag*>(tables[0].base);
  return true;
}

bool Region::map_first(bool small) {
  began_without_limit =
      !base::address_space_is_limited() && map_up_to(small ? chunk_bytes : least_growth, large_table_step);
  return began_without_limit || map_up_to(chunk_bytes, small_table_step);
}

bool Region::reserve(std::size_t most, std::size_t bytes_beside, bool small) {
  // Where the largest region has no place, one with less room above or a smaller one may have.
  constexpr std::size_t least_place = std::size_t{1} << 30;
  std::size_t room_above = most_room_above;
  while (!lay_out(most, bytes_beside, room_above) || !map_first(small)) {
    for (Table& table : tables) {
      if (table.mapped != 0) {
        base::release_pages(table.base, table.mapped);
        table.mapped = 0;
      }
    }
    if (room_above > most) {
      room_above /= 4;
      continue;
    }
    most /= 2;
    room_above = most;
    if (most < least_place) {
      return false;
    }
  }
  return true;
}

bool Region::grow(std::size_t wanted) {
  const std::size_t before = mapped();
  if (wanted <= before) {
    return true;
  }
  if (wanted > most_bytes) {
    return false;
  }
  const std::size_t ahead =
      std::min(std::max(wanted, before + std::max(least_growth, before / 8 & ~(chunk_bytes - 1))), most_bytes);
  // No limit is read: a program in a sandbox that allows few system calls may map, but not ask.
  return map_up_to(ahead, large_table_step, room_beside) ||
         map_up_to(wanted, small_table_step, began_without_limit || before >= smallest_region ? room_beside : 0);
}

void Region::populate_tables(std::uint32_t first_page, std::uint32_t count) const {
  // What is populated at once is two chunks at most, with a part of a slice at both ends.
  constexpr std::size_t most_table_bytes = (2 * chunk_bytes / slice_bytes + 1) * 64;
  for (const Table& table : tables) {
    if (table.bytes_per_slice == 0 || table.bytes_per_slice > page_bytes) {
      continue;
    }
    char* const first = table.base + first_page * table.bytes_per_slice / pages_per_slice;
    char* const last = table.base + ((first_page + count) * table.bytes_per_slice - 1) / pages_per_slice;
    base::Bound table_pages("pages of a table populated", most_table_bytes / page_bytes + 1);
    for (char* at = first; at < last; at += page_bytes) {
      table_pages.turn();
      touch_without_change(at);
    }
    touch_without_change(last);
  }
}

}  // namespace blockyard::pages
