#include "heap/region.hpp"

#include "base/pages.hpp"

namespace blockyard::heap {

constinit Region region;

namespace {

#if BLOCKYARD_CHECKED
constexpr std::size_t largest_region = std::size_t{32} << 30;  // the checked heap's tables take twice as much again
#else
constexpr std::size_t largest_region = std::size_t{256} << 30;
#endif
constexpr std::size_t smallest_region = std::size_t{64} << 20;
constexpr std::size_t largest_alignment = std::size_t{1} << 30;

std::size_t table_bytes(std::size_t bytes) {
  return (bytes >> granule_shift) * (sizeof(Directory) + sizeof(Slab)) + (bytes >> page_shift) * sizeof(PageTag);
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
    // Zero pages are valid tables: an untouched Directory, Slab or PageTag reads as all zero, which means "nothing
    // here".
    region.directory = reinterpret_cast<Directory*>(tables);
    region.slabs = reinterpret_cast<Slab*>(tables + (bytes >> granule_shift) * sizeof(Directory));
    region.pages = reinterpret_cast<PageTag*>(tables + (bytes >> granule_shift) * (sizeof(Directory) + sizeof(Slab)));
    region.base = static_cast<char*>(base);
    region.alignment = alignment;
    region.bytes = bytes;
    return true;
  }
  return false;
}

}  // namespace blockyard::heap
