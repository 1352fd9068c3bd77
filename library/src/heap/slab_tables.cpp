#include "heap/slab_tables.hpp"

namespace blockyard::heap {

constinit HeapRegion region;

bool reserve_region(bool small) {
  if (region.mapped() != 0) {
    return true;
  }
  if (!region.reserve(largest_region, heap_table_bytes, small)) {
    return false;
  }
  // Zero pages are valid tables: an untouched Owner, RemoteFrees, Slab or PageTag reads as all zero, which means
  // "nothing here".
  region.owners = reinterpret_cast<Atomic<std::uint32_t>*>(region.tables[1].base);
  region.remote_frees = reinterpret_cast<RemoteFrees*>(region.tables[2].base);
  region.slabs = reinterpret_cast<Slab*>(region.tables[3].base);
  char* const classes = region.tables[4].base;
  region.class_map = reinterpret_cast<Atomic<std::uint8_t>*>(classes);
  region.class_map_of_zero =
      reinterpret_cast<std::uintptr_t>(classes) - (reinterpret_cast<std::uintptr_t>(region.base) >> slice_shift);
  return true;
}

}  // namespace blockyard::heap
