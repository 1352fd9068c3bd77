/// tcmalloc from gperftools. Prefaulted: nothing is released (allocators.toml), and the page heap that all threads
/// share is populated by use.
#include <string>

#include "support/library_adapter.hpp"
#include "support/populate.hpp"

namespace {

using blockyard::adapters::Library;

std::string bind(Library& tcmalloc, by_adapter&) {
  const char* (*tc_version)(int* major, int* minor, const char** patch) = nullptr;
  tcmalloc.bind("tc_version", tc_version);
  if (!tcmalloc.ok()) return {};
  int major = 0;
  int minor = 0;
  const char* patch = "";
  tc_version(&major, &minor, &patch);
  return std::to_string(major) + "." + std::to_string(minor) + patch;
}

int populate(const by_adapter_setup& setup, by_adapter& adapter) {
  blockyard::adapters::populate_by_use(adapter, blockyard::adapters::bytes_for_peak(setup));
  return 0;
}

}  // namespace

extern "C" BY_API const by_adapter* by_adapter_get() {
  return blockyard::adapters::library_adapter({.name = "tcmalloc",
                                               .library = "libtcmalloc_minimal.so.4",
                                               .names = {.malloc = "tc_malloc",
                                                         .calloc = "tc_calloc",
                                                         .realloc = "tc_realloc",
                                                         .memalign = "tc_memalign",
                                                         .free = "tc_free",
                                                         .usable_size = "tc_malloc_size"},
                                               .bind = bind,
                                               .populate = populate});
}

extern "C" BY_API size_t by_adapter_usable_size(void* block) { return blockyard::adapters::library_usable_size(block); }
