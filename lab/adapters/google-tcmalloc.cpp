/// Google's tcmalloc. Prefaulted: the page heap that all threads share is populated by use, and nothing is released, as
/// no thread of this process does so in the background.
#include <string>

#include "support/library_adapter.hpp"
#include "support/populate.hpp"

namespace {

using blockyard::adapters::Library;

// It has no version of its own.
std::string bind(Library&, by_adapter&) { return "crate " BLOCKYARD_CRATE_VERSION; }

int populate(const by_adapter_setup& setup, by_adapter& adapter) {
  blockyard::adapters::populate_by_use(adapter, blockyard::adapters::bytes_for_peak(setup));
  return 0;
}

}  // namespace

extern "C" BY_API const by_adapter* by_adapter_get() {
  return blockyard::adapters::library_adapter({.name = "google-tcmalloc",
                                               .library = nullptr,
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
