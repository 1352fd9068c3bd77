/// mimalloc, version 2 or 3: its mi_ functions. Favoured: purging is off (allocators.toml), and an arena of populated
/// memory is handed over, which every thread's heap takes its pages from.
#include <string>

#include "support/library.hpp"
#include "support/populate.hpp"
#include "support/setup.hpp"

namespace {

using blockyard::adapters::fail;
using blockyard::adapters::Library;

struct Entry {
  void* (*malloc)(size_t);
  void* (*zalloc)(size_t);
  void* (*realloc)(void*, size_t);
  void* (*memalign)(size_t alignment, size_t size);
  void (*free)(void*);
  int (*version)();
  bool (*manage_os_memory)(void* start, size_t bytes, bool committed, bool large, bool zero, int numa_node);
};
Entry mi;
std::string version;

// An arena is cut into slices for pages of one size class each, and its own bookkeeping comes out of it: more than
// bytes_for_peak alone, or the last classes that a program touches find it full.
constexpr uint64_t kArenaOverhead = uint64_t{64} << 20;
constexpr uint64_t kArenaUnit = uint64_t{64} << 20;

void* reallocate(void* block, size_t, size_t, size_t size) { return mi.realloc(block, size); }

int init(const by_adapter_setup* setup);

by_adapter adapter = {
    .abi = BY_ADAPTER_ABI,
    .flags = 0,
    .name = "mimalloc",
    .version = "",
    .init = init,
    .thread_start = nullptr,
    .thread_stop = nullptr,
    .allocate = nullptr,
    .allocate_zeroed = nullptr,
    .allocate_aligned = nullptr,
    .reallocate = reallocate,
    .free = nullptr,
    .free_sized = nullptr,
};

Library& library() {
  static Library loaded("libmimalloc.so.2.0");
  return loaded;
}

int init(const by_adapter_setup* setup) {
  static blockyard::adapters::PopulatedRegion region;
  if (blockyard::adapters::check_abi(*setup) != 0) return 1;
  if (!library().ok()) return fail(*setup, library().error());
  if (setup->populate == 0) return 0;
  const uint64_t bytes = blockyard::adapters::bytes_for_peak(*setup) + kArenaOverhead;
  if (!region.reserve((bytes + kArenaUnit - 1) / kArenaUnit * kArenaUnit)) {
    return fail(*setup, "the system has no memory to populate for the journal's peak");
  }
  if (!mi.manage_os_memory(region.begin(), region.size(), true, false, true, -1)) {
    return fail(*setup, "mimalloc refuses the populated arena");
  }
  return 0;
}

// 209 is 2.0.9 and 343 is 3.4.3; since minor numbers outgrew one digit also 30403.
std::string version_text(int number) {
  const int step = number >= 10000 ? 100 : 10;
  return std::to_string(number / step / step) + "." + std::to_string(number / step % step) + "." +
         std::to_string(number % step);
}

}  // namespace

extern "C" BY_API const by_adapter* by_adapter_get() {
  static const bool bound = [] {
    Library& mimalloc = library();
    mimalloc.bind("mi_malloc", mi.malloc);
    mimalloc.bind("mi_zalloc", mi.zalloc);
    mimalloc.bind("mi_realloc", mi.realloc);
    mimalloc.bind("mi_memalign", mi.memalign);
    mimalloc.bind("mi_free", mi.free);
    mimalloc.bind("mi_version", mi.version);
    mimalloc.bind("mi_manage_os_memory", mi.manage_os_memory);
    if (!mimalloc.ok()) return false;
    adapter.allocate = mi.malloc;
    adapter.allocate_zeroed = mi.zalloc;
    adapter.allocate_aligned = mi.memalign;
    adapter.free = mi.free;
    version = version_text(mi.version());
    adapter.version = version.c_str();
    return true;
  }();
  static_cast<void>(bound);
  return &adapter;
}
