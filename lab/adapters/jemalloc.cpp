/// jemalloc: its own malloc family, loaded beside the process's. Prefaulted: decay is off (allocators.toml), and the
/// extents of every arena come from one populated region, through jemalloc's extent hooks.
#include <string>

#include "support/library_adapter.hpp"
#include "support/populate.hpp"

namespace {

using blockyard::adapters::fail;
using blockyard::adapters::Library;

int (*mallctl)(const char* name, void* old_value, size_t* old_bytes, void* new_value, size_t new_bytes) = nullptr;
blockyard::adapters::PopulatedRegion region;

// extent_hooks_t of jemalloc 5, as its manual describes it; "true" means that a hook declines.
struct ExtentHooks {
  void* (*alloc)(ExtentHooks*, void* wanted, size_t size, size_t alignment, bool* zero, bool* commit, unsigned arena);
  bool (*dalloc)(ExtentHooks*, void* address, size_t size, bool committed, unsigned arena);
  void (*destroy)(ExtentHooks*, void* address, size_t size, bool committed, unsigned arena);
  bool (*commit)(ExtentHooks*, void* address, size_t size, size_t offset, size_t length, unsigned arena);
  bool (*decommit)(ExtentHooks*, void* address, size_t size, size_t offset, size_t length, unsigned arena);
  bool (*purge_lazy)(ExtentHooks*, void* address, size_t size, size_t offset, size_t length, unsigned arena);
  bool (*purge_forced)(ExtentHooks*, void* address, size_t size, size_t offset, size_t length, unsigned arena);
  bool (*split)(ExtentHooks*, void* address, size_t size, size_t left, size_t right, bool committed, unsigned arena);
  bool (*merge)(ExtentHooks*, void* left, size_t left_size, void* right, size_t right_size, bool committed,
                unsigned arena);
};

void* extent_alloc(ExtentHooks*, void* wanted, size_t size, size_t alignment, bool* zero, bool* commit, unsigned) {
  if (wanted != nullptr) return nullptr;
  *zero = true;
  *commit = true;
  void* extent = region.take(size, alignment);
  return extent != nullptr ? extent : blockyard::adapters::map_aligned(size, alignment);
}
// Declined: jemalloc then keeps the extent and reuses it.
bool extent_dalloc(ExtentHooks*, void*, size_t, bool, unsigned) { return true; }
// Allowed: neighbouring mappings of one process may be split and joined.
bool extent_split(ExtentHooks*, void*, size_t, size_t, size_t, bool, unsigned) { return false; }
bool extent_merge(ExtentHooks*, void*, size_t, void*, size_t, bool, unsigned) { return false; }

ExtentHooks hooks = {.alloc = extent_alloc,
                     .dalloc = extent_dalloc,
                     .destroy = nullptr,
                     .commit = nullptr,
                     .decommit = nullptr,
                     .purge_lazy = nullptr,
                     .purge_forced = nullptr,
                     .split = extent_split,
                     .merge = extent_merge};

int hook_every_arena(const by_adapter_setup& setup) {
  unsigned arenas = 0;
  size_t bytes = sizeof(arenas);
  if (mallctl("opt.narenas", &arenas, &bytes, nullptr, 0) != 0)
    return fail(setup, "jemalloc does not give opt.narenas");
  for (unsigned arena = 0; arena < arenas; ++arena) {
    const std::string name = "arena." + std::to_string(arena) + ".extent_hooks";
    ExtentHooks* chosen = &hooks;
    if (mallctl(name.c_str(), nullptr, nullptr, &chosen, sizeof(chosen)) != 0) {
      return fail(setup, "jemalloc refuses " + name);
    }
  }
  return 0;
}

std::string bind(Library& jemalloc, by_adapter&) {
  jemalloc.bind("mallctl", mallctl);
  if (!jemalloc.ok()) return {};
  // "5.3.0-0-g54eaed1d8b56...": the release is the part before the first dash.
  const char* text = "";
  size_t bytes = sizeof(text);
  mallctl("version", &text, &bytes, nullptr, 0);
  const std::string version = text;
  return version.substr(0, version.find('-'));
}

int populate(const by_adapter_setup& setup, by_adapter&) {
  // A quarter more than for others: every arena keeps slabs and dirty extents of its own. With 10 % more, some page
  // faults are left.
  const uint64_t bytes = blockyard::adapters::bytes_for_peak(setup);
  if (!region.reserve(bytes + bytes / 4)) {
    return fail(setup, "the system has no memory to populate for the journal's peak");
  }
  return hook_every_arena(setup);
}

}  // namespace

extern "C" BY_API const by_adapter* by_adapter_get() {
  return blockyard::adapters::library_adapter({.name = "jemalloc",
                                               .library = "libjemalloc.so.2",
                                               .names = {.malloc = "malloc",
                                                         .calloc = "calloc",
                                                         .realloc = "realloc",
                                                         .memalign = "memalign",
                                                         .free = "free",
                                                         .usable_size = "malloc_usable_size"},
                                               .bind = bind,
                                               .populate = populate});
}

extern "C" BY_API size_t by_adapter_usable_size(void* block) { return blockyard::adapters::library_usable_size(block); }
