/// tbbmalloc: the scalable_ functions of Threading Building Blocks. Favoured: populated by use.
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
  void* (*aligned_malloc)(size_t size, size_t alignment);
  void (*free)(void*);
};
Entry tbb;
std::string version;

void* allocate_zeroed(size_t size) { return tbb.calloc(1, size); }
void* allocate_aligned(size_t alignment, size_t size) { return tbb.aligned_malloc(size, alignment); }
// scalable_realloc and scalable_free take aligned blocks too: both find a block's kind by its address.
void* reallocate(void* block, size_t, size_t, size_t size) { return tbb.realloc(block, size); }

int init(const by_adapter_setup* setup);

by_adapter adapter = {
    .abi = BY_ADAPTER_ABI,
    .flags = 0,
    .name = "tbbmalloc",
    .version = "",
    .init = init,
    .thread_start = nullptr,
    .thread_stop = nullptr,
    .allocate = nullptr,
    .allocate_zeroed = allocate_zeroed,
    .allocate_aligned = allocate_aligned,
    .reallocate = reallocate,
    .free = nullptr,
    .free_sized = nullptr,
};

Library& library() {
  static Library loaded("libtbbmalloc.so.2");
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
    Library& tbbmalloc = library();
    tbbmalloc.bind("scalable_malloc", tbb.malloc);
    tbbmalloc.bind("scalable_calloc", tbb.calloc);
    tbbmalloc.bind("scalable_realloc", tbb.realloc);
    tbbmalloc.bind("scalable_aligned_malloc", tbb.aligned_malloc);
    tbbmalloc.bind("scalable_free", tbb.free);
    if (!tbbmalloc.ok()) return false;
    adapter.allocate = tbb.malloc;
    adapter.free = tbb.free;
    // It has no call for its version, only the banner that it prints where TBB_VERSION is set.
    version = tbbmalloc.text_after("TBBmalloc: VERSION");
    if (version.empty()) version = blockyard::adapters::version_of_package("");
    adapter.version = version.c_str();
    return true;
  }();
  static_cast<void>(bound);
  return &adapter;
}
