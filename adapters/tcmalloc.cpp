/// tcmalloc as gperftools builds it. Favoured: nothing is released (allocators.toml), and the page heap that all
/// threads share is populated by use.
#include <string>

#include "support/library.hpp"
#include "support/populate.hpp"
#include "support/setup.hpp"

namespace {

using blockyard::adapters::fail;
using blockyard::adapters::Library;

struct Entry {
  void* (*malloc)(size_t);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void* (*memalign)(size_t alignment, size_t size);
  void (*free)(void*);
  const char* (*version)(int* major, int* minor, const char** patch);
};
Entry tc;
std::string version;

void* allocate_zeroed(size_t size) { return tc.calloc(1, size); }
void* reallocate(void* block, size_t, size_t, size_t size) { return tc.realloc(block, size); }

int init(const by_adapter_setup* setup);

by_adapter adapter = {
    .abi = BY_ADAPTER_ABI,
    .flags = 0,
    .name = "tcmalloc",
    .version = "",
    .init = init,
    .thread_start = nullptr,
    .thread_stop = nullptr,
    .allocate = nullptr,
    .allocate_zeroed = allocate_zeroed,
    .allocate_aligned = nullptr,
    .reallocate = reallocate,
    .free = nullptr,
    .free_sized = nullptr,
};

Library& library() {
  static Library loaded("libtcmalloc_minimal.so.4");
  return loaded;
}

int init(const by_adapter_setup* setup) {
  if (blockyard::adapters::check_abi(*setup) != 0) return 1;
  if (!library().ok()) return fail(*setup, library().error());
  if (setup->populate != 0) blockyard::adapters::populate_by_use(adapter, blockyard::adapters::bytes_for_peak(*setup));
  return 0;
}

}  // namespace

extern "C" BY_API const by_adapter* by_adapter_get() {
  static const bool bound = [] {
    Library& tcmalloc = library();
    tcmalloc.bind("tc_malloc", tc.malloc);
    tcmalloc.bind("tc_calloc", tc.calloc);
    tcmalloc.bind("tc_realloc", tc.realloc);
    tcmalloc.bind("tc_memalign", tc.memalign);
    tcmalloc.bind("tc_free", tc.free);
    tcmalloc.bind("tc_version", tc.version);
    if (!tcmalloc.ok()) return false;
    adapter.allocate = tc.malloc;
    adapter.allocate_aligned = tc.memalign;
    adapter.free = tc.free;
    int major = 0;
    int minor = 0;
    const char* patch = "";
    tc.version(&major, &minor, &patch);
    version = std::to_string(major) + "." + std::to_string(minor) + patch;
    adapter.version = version.c_str();
    return true;
  }();
  static_cast<void>(bound);
  return &adapter;
}
