/// tbbmalloc: the scalable_ functions of Threading Building Blocks. Prefaulted: these functions have no setting that
/// keeps freed memory, and populating by use leaves most page faults. A memory pool of the same allocator has one,
/// `keepAllMemory`, and can be given a source of memory: here, one populated region.
#include <sys/mman.h>

#include <cstring>
#include <string>

#include "support/library_adapter.hpp"
#include "support/populate.hpp"

namespace {

using blockyard::adapters::fail;
using blockyard::adapters::Library;

Library* library = nullptr;
void* (*aligned_malloc)(size_t size, size_t alignment) = nullptr;

// rml::MemPoolPolicy of scalable_allocator.h.
struct PoolPolicy {
  void* (*take)(intptr_t pool_id, size_t& bytes);
  int (*give_back)(intptr_t pool_id, void* memory, size_t bytes);
  size_t granularity;
  int version;
  unsigned fixed_pool : 1;
  unsigned keep_all_memory : 1;
  unsigned reserved : 30;
};
class MemoryPool;

struct PoolEntry {
  int (*create)(intptr_t pool_id, const PoolPolicy* policy, MemoryPool** pool);
  void* (*malloc)(MemoryPool*, size_t);
  void* (*realloc)(MemoryPool*, void*, size_t);
  void* (*aligned_malloc)(MemoryPool*, size_t size, size_t alignment);
  bool (*free)(MemoryPool*, void*);
};
PoolEntry entry;
MemoryPool* pool = nullptr;
blockyard::adapters::PopulatedRegion region;
// Regions of the pool that are begun and not yet full: a few per thread.
constexpr uint64_t pool_overhead = uint64_t{16} << 20;

// scalable_realloc and scalable_free take aligned blocks too: both find a block's kind from its address.
void* allocate_aligned(size_t alignment, size_t size) { return aligned_malloc(size, alignment); }

void* pool_allocate(size_t size) { return entry.malloc(pool, size); }
// The pool interface has no calloc; its memory may have been used before.
void* pool_allocate_zeroed(size_t size) {
  void* block = entry.malloc(pool, size);
  if (block != nullptr) std::memset(block, 0, size);
  return block;
}
void* pool_allocate_aligned(size_t alignment, size_t size) { return entry.aligned_malloc(pool, size, alignment); }
void* pool_reallocate(void* block, size_t, size_t, size_t size) { return entry.realloc(pool, block, size); }
void pool_free(void* block) { entry.free(pool, block); }

void* pool_source(intptr_t, size_t& bytes) {
  constexpr size_t page_bytes = 4096;
  bytes = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  void* memory = region.take(bytes, page_bytes);
  if (memory != nullptr) return memory;
  memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

int use_populated_pool(const by_adapter_setup& setup, by_adapter& adapter) {
  Library& tbbmalloc = *library;
  tbbmalloc.bind("_ZN3rml14pool_create_v1ElPKNS_13MemPoolPolicyEPPNS_10MemoryPoolE", entry.create);
  tbbmalloc.bind("_ZN3rml11pool_mallocEPNS_10MemoryPoolEm", entry.malloc);
  tbbmalloc.bind("_ZN3rml12pool_reallocEPNS_10MemoryPoolEPvm", entry.realloc);
  tbbmalloc.bind("_ZN3rml19pool_aligned_mallocEPNS_10MemoryPoolEmm", entry.aligned_malloc);
  tbbmalloc.bind("_ZN3rml9pool_freeEPNS_10MemoryPoolEPv", entry.free);
  if (!tbbmalloc.ok()) return fail(setup, tbbmalloc.error());
  const uint64_t bytes = blockyard::adapters::bytes_for_peak(setup) + pool_overhead;
  if (!region.reserve(bytes)) return fail(setup, "the system has no memory to populate for the journal's peak");
  const PoolPolicy policy = {.take = pool_source,
                             .give_back = [](intptr_t, void*, size_t) { return 0; },
                             .granularity = 0,
                             .version = 1,
                             .fixed_pool = 0,
                             .keep_all_memory = 1,
                             .reserved = 0};
  if (entry.create(0, &policy, &pool) != 0) return fail(setup, "tbbmalloc refuses a memory pool");
  adapter.flags |= BY_ADAPTER_EMULATES_ZEROED;
  adapter.allocate = pool_allocate;
  adapter.allocate_zeroed = pool_allocate_zeroed;
  adapter.allocate_aligned = pool_allocate_aligned;
  adapter.reallocate = pool_reallocate;
  adapter.free = pool_free;
  return 0;
}

std::string bind(Library& tbbmalloc, by_adapter& adapter) {
  library = &tbbmalloc;
  tbbmalloc.bind("scalable_aligned_malloc", aligned_malloc);
  adapter.allocate_aligned = allocate_aligned;
  // It has no call for its version, only the banner that it prints when TBB_VERSION is set.
  const std::string version = tbbmalloc.text_after("TBBmalloc: VERSION");
  return version.empty() ? blockyard::adapters::version_of_package("") : version;
}

}  // namespace

extern "C" BY_API const by_adapter* by_adapter_get() {
  return blockyard::adapters::library_adapter({.name = "tbbmalloc",
                                               .library = "libtbbmalloc.so.2",
                                               .names = {.malloc = "scalable_malloc",
                                                         .calloc = "scalable_calloc",
                                                         .realloc = "scalable_realloc",
                                                         .memalign = nullptr,
                                                         .free = "scalable_free",
                                                         .usable_size = "scalable_msize"},
                                               .bind = bind,
                                               .populate = use_populated_pool});
}

extern "C" BY_API size_t by_adapter_usable_size(void* block) { return blockyard::adapters::library_usable_size(block); }
