/// Scudo, LLVM's hardened allocator, as its stand-alone shared library. Favoured: nothing is released
/// (allocators.toml), populated by use. Each size class has a region of its own, so populated memory serves its own
/// class only.
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
};
Entry scudo;
std::string version;

void* allocate_zeroed(size_t size) { return scudo.calloc(1, size); }
void* reallocate(void* block, size_t, size_t, size_t size) { return scudo.realloc(block, size); }

int init(const by_adapter_setup* setup);

by_adapter adapter = {
    .abi = BY_ADAPTER_ABI,
    .flags = 0,
    .name = "scudo",
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
  static Library loaded("/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.scudo_standalone-" BLOCKYARD_MACHINE
                        ".so");
  return loaded;
}

int init(const by_adapter_setup* setup) {
  if (blockyard::adapters::check_abi(*setup) != 0) return 1;
  if (!library().ok()) return fail(*setup, library().error());
  if (setup->populate != 0)
    blockyard::adapters::populate_by_use(adapter, blockyard::adapters::bytes_for_peak(*setup), 32768);
  return 0;
}

}  // namespace

extern "C" BY_API const by_adapter* by_adapter_get() {
  static const bool bound = [] {
    Library& loaded = library();
    loaded.bind("malloc", scudo.malloc);
    loaded.bind("calloc", scudo.calloc);
    loaded.bind("realloc", scudo.realloc);
    loaded.bind("memalign", scudo.memalign);
    loaded.bind("free", scudo.free);
    // A marker that no other malloc has: the same names in a file that is not Scudo must not pass for it.
    void (*print_stats)() = nullptr;
    loaded.bind("__scudo_print_stats", print_stats);
    if (!loaded.ok()) return false;
    adapter.allocate = scudo.malloc;
    adapter.allocate_aligned = scudo.memalign;
    adapter.free = scudo.free;
    version = blockyard::adapters::version_of_package("of LLVM 19");
    adapter.version = version.c_str();
    return true;
  }();
  static_cast<void>(bound);
  return &adapter;
}
