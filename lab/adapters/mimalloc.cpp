/// mimalloc, version 2 or 3: its mi_ functions. Prefaulted: purging is off (allocators.toml), and mimalloc gets an
/// arena of populated memory, from which every thread's heap takes its pages.
#include <string>

#include "support/library_adapter.hpp"
#include "support/populate.hpp"

namespace {

using blockyard::adapters::fail;
using blockyard::adapters::Library;

bool (*manage_os_memory)(void* start, size_t bytes, bool committed, bool large, bool zero, int numa_node) = nullptr;

// An arena is cut into slices for pages of one size class each, and its own bookkeeping is in it. It needs more than
// bytes_for_peak; otherwise the last classes that a program touches find it full.
constexpr uint64_t arena_overhead = uint64_t{64} << 20;
constexpr uint64_t arena_unit = uint64_t{64} << 20;

int populate(const by_adapter_setup& setup, by_adapter&) {
  static blockyard::adapters::PopulatedRegion region;
  const uint64_t bytes = blockyard::adapters::bytes_for_peak(setup) + arena_overhead;
  if (!region.reserve((bytes + arena_unit - 1) / arena_unit * arena_unit)) {
    return fail(setup, "the system has no memory to populate for the journal's peak");
  }
  if (!manage_os_memory(region.begin(), region.size(), true, false, true, -1)) {
    return fail(setup, "mimalloc refuses the populated arena");
  }
  return 0;
}

// 209 is 2.0.9 and 343 is 3.4.3; since minor numbers outgrew one digit also 30403.
std::string version_text(int number) {
  const int step = number >= 10000 ? 100 : 10;
  return std::to_string(number / step / step) + "." + std::to_string(number / step % step) + "." +
         std::to_string(number % step);
}

std::string bind(Library& mimalloc, by_adapter& adapter) {
  int (*version)() = nullptr;
  mimalloc.bind("mi_version", version);
  mimalloc.bind("mi_manage_os_memory", manage_os_memory);
  // Replaces its calloc, which would multiply.
  mimalloc.bind("mi_zalloc", adapter.allocate_zeroed);
  return mimalloc.ok() ? version_text(version()) : std::string();
}

}  // namespace

extern "C" BY_API const by_adapter* by_adapter_get() {
  return blockyard::adapters::library_adapter({.name = "mimalloc",
                                               .library = "libmimalloc.so.2.0",
                                               .names = {.malloc = "mi_malloc",
                                                         .calloc = nullptr,
                                                         .realloc = "mi_realloc",
                                                         .memalign = "mi_memalign",
                                                         .free = "mi_free",
                                                         .usable_size = "mi_usable_size"},
                                               .bind = bind,
                                               .populate = populate});
}

extern "C" BY_API size_t by_adapter_usable_size(void* block) { return blockyard::adapters::library_usable_size(block); }
