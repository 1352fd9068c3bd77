/// tbbmalloc: the scalable_ functions of Threading Building Blocks. Favoured: its scalable_ functions have no setting
/// that keeps freed memory (populating them by use left two thirds of the page faults), but the same allocator as a
/// memory pool has: `keepAllMemory`, and a source of memory, which here is one populated region.
#include <sys/mman.h>

#include <cstring>
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
// Regions of the pool that are begun and not yet full, a few a thread.
constexpr uint64_t kPoolOverhead = uint64_t{16} << 20;

void* allocate_zeroed(size_t size) { return tbb.calloc(1, size); }
void* allocate_aligned(size_t alignment, size_t size) { return tbb.aligned_malloc(size, alignment); }
// scalable_realloc and scalable_free take aligned blocks too: both find a block's kind by its address.
void* reallocate(void* block, size_t, size_t, size_t size) { return tbb.realloc(block, size); }

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

void* pool_source(intptr_t, size_t& bytes) {
  constexpr size_t kPage = 4096;
  bytes = (bytes + kPage - 1) / kPage * kPage;
  void* memory = region.take(bytes, kPage);
  if (memory != nullptr) return memory;
  memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

int use_populated_pool(const by_adapter_setup& setup) {
  Library& tbbmalloc = library();
  tbbmalloc.bind("_ZN3rml14pool_create_v1ElPKNS_13MemPoolPolicyEPPNS_10MemoryPoolE", entry.create);
  tbbmalloc.bind("_ZN3rml11pool_mallocEPNS_10MemoryPoolEm", entry.malloc);
  tbbmalloc.bind("_ZN3rml12pool_reallocEPNS_10MemoryPoolEPvm", entry.realloc);
  tbbmalloc.bind("_ZN3rml19pool_aligned_mallocEPNS_10MemoryPoolEmm", entry.aligned_malloc);
  tbbmalloc.bind("_ZN3rml9pool_freeEPNS_10MemoryPoolEPv", entry.free);
  if (!tbbmalloc.ok()) return fail(setup, tbbmalloc.error());
  const uint64_t bytes = blockyard::adapters::bytes_for_peak(setup) + kPoolOverhead;
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

int init(const by_adapter_setup* setup) {
  if (blockyard::adapters::check_abi(*setup) != 0) return 1;
  if (!library().ok()) return fail(*setup, library().error());
  return setup->populate != 0 ? use_populated_pool(*setup) : 0;
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
