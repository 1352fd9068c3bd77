/// dlmalloc: Doug Lea's malloc 2.8.6 from Boost.Container, with its own spin lock.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "support/library_adapter.hpp"
#include "support/populate.hpp"

namespace {

using blockyard::adapters::fail;
using blockyard::adapters::Library;

struct Entry {
  size_t (*size)(const void*);
  void* (*malloc)(size_t);
  void (*free)(void*);
  void* (*memalign)(size_t size, size_t alignment);
  int (*grow)(void*, size_t minimum, size_t maximum, size_t* received);
  int (*shrink)(void*, size_t minimum, size_t maximum, size_t* received, int commit);
  int (*mallopt)(int, int);
};
Entry dl;

// The same test as in dlmalloc's own calloc: a chunk without either in-use bit has a mapping of its own and is zero.
bool is_mapped(const void* block) {
  size_t head;
  std::memcpy(&head, static_cast<const char*>(block) - sizeof(size_t), sizeof(size_t));
  return (head & 3) == 0;
}

void* allocate_zeroed(size_t size) {
  void* block = dl.malloc(size);
  if (block != nullptr && !is_mapped(block)) std::memset(block, 0, size);
  return block;
}

void* allocate_aligned(size_t alignment, size_t size) { return dl.memalign(size, alignment); }

// Boost exports no realloc, but the two steps that dlmalloc's realloc takes first; the third, a copy, is the same here.
void* reallocate(void* block, size_t, size_t, size_t size) {
  if (block == nullptr) return dl.malloc(size);
  const size_t usable = dl.size(block);
  size_t received = size;
  if (size <= usable) {
    dl.shrink(block, size, size, &received, 1);
    return block;
  }
  if (dl.grow(block, size, size, &received) != 0) return block;
  void* moved = dl.malloc(size);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, block, usable);
  dl.free(block);
  return moved;
}

// dlmalloc's numbers for mallopt, unlike glibc's.
constexpr int set_trim_threshold = -1;
constexpr int set_granularity = -2;
constexpr int set_mmap_threshold = -3;

// mallopt takes an int; -1 means the highest value.
int mallopt_value(uint64_t bytes) { return bytes > INT32_MAX ? -1 : static_cast<int>(bytes); }

// One segment for all of it: dlmalloc unmaps a further segment that is wholly free, whatever the trim threshold is.
int populate(const by_adapter_setup& setup, by_adapter& adapter) {
  constexpr uint64_t largest_granularity = uint64_t{1} << 30;
  const uint64_t bytes = blockyard::adapters::bytes_for_peak(setup);
  const uint64_t granularity = std::min(std::bit_ceil(bytes), largest_granularity);
  if (dl.mallopt(set_granularity, static_cast<int>(granularity)) == 0)
    return fail(setup, "dlmalloc refuses its granularity");
  blockyard::adapters::populate_by_use(adapter, bytes);
  return 0;
}

int set_options(const by_adapter_setup& setup) {
  constexpr struct {
    const char* option;
    int parameter;
  } parameters[] = {{"trim_threshold", set_trim_threshold}, {"mmap_threshold", set_mmap_threshold}};
  for (const auto& [name, parameter] : parameters) {
    const auto value = blockyard::adapters::bytes_option(setup, name);
    if (value && dl.mallopt(parameter, mallopt_value(*value)) == 0) {
      return fail(setup, std::string("dlmalloc refuses the value of ") + name);
    }
  }
  return 0;
}

std::string bind(Library& boost, by_adapter& adapter) {
  boost.bind("_ZN5boost9container13dlmalloc_sizeEPKv", dl.size);
  boost.bind("_ZN5boost9container17dlmalloc_memalignEmm", dl.memalign);
  boost.bind("_ZN5boost9container13dlmalloc_growEPvmmPm", dl.grow);
  boost.bind("_ZN5boost9container15dlmalloc_shrinkEPvmmPmi", dl.shrink);
  boost.bind("_ZN5boost9container16dlmalloc_malloptEii", dl.mallopt);
  dl.malloc = adapter.allocate;
  dl.free = adapter.free;
  adapter.flags = BY_ADAPTER_EMULATES_ZEROED | BY_ADAPTER_EMULATES_REALLOCATE;
  adapter.allocate_zeroed = allocate_zeroed;
  adapter.allocate_aligned = allocate_aligned;
  adapter.reallocate = reallocate;
  // Boost's version is in the file's name; 2.8.6 is the release of dlmalloc that every Boost.Container has.
  const std::string path = boost.path();
  const size_t at = path.rfind(".so.");
  return "2.8.6" + (at == std::string::npos ? "" : " (Boost " + path.substr(at + 4) + ")");
}

}  // namespace

extern "C" BY_API const by_adapter* by_adapter_get() {
  return blockyard::adapters::library_adapter({.name = "dlmalloc",
                                               .library = "libboost_container.so.1.74.0",
                                               .names = {.malloc = "_ZN5boost9container15dlmalloc_mallocEm",
                                                         .calloc = nullptr,
                                                         .realloc = nullptr,
                                                         .memalign = nullptr,
                                                         .free = "_ZN5boost9container13dlmalloc_freeEPv",
                                                         .usable_size = "_ZN5boost9container13dlmalloc_sizeEPKv"},
                                               .bind = bind,
                                               .populate = populate,
                                               .set_options = set_options});
}

extern "C" BY_API size_t by_adapter_usable_size(void* block) { return blockyard::adapters::library_usable_size(block); }
