/// glibc: the system's malloc. Prefaulted: its tunables (allocators.toml) keep it from returning memory, and this file
/// populates.
#include <gnu/libc-version.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>

#include "support/populate.hpp"
#include "support/setup.hpp"

namespace {

// A thread's arena grows in heaps of 64 MiB, and a wholly free heap is unmapped whatever the trim threshold is: stay
// inside the first.
constexpr uint64_t largest_arena_share = uint64_t{48} << 20;

uint64_t arena_share = 0;

void* allocate_zeroed(size_t size) { return calloc(1, size); }
void* reallocate(void* block, size_t, size_t, size_t size) { return realloc(block, size); }

int init(const by_adapter_setup* setup);
void thread_start();

const by_adapter adapter = blockyard::adapters::described({
    .name = "glibc",
    .version = gnu_get_libc_version(),
    .init = init,
    .thread_start = thread_start,
    .allocate = malloc,
    .allocate_zeroed = allocate_zeroed,
    .allocate_aligned = memalign,
    .reallocate = reallocate,
    .free = free,
});

int init(const by_adapter_setup* setup) {
  if (blockyard::adapters::check_abi(*setup) != 0) return 1;
  if (setup->populate != 0) {
    const uint64_t bytes = blockyard::adapters::bytes_for_peak(*setup);
    blockyard::adapters::populate_by_use(adapter, bytes);
    arena_share = std::min(bytes / std::max(setup->threads, 1u), largest_arena_share);
  }
  return 0;
}

// Each thread has an arena of its own, which only allocations on that thread populate.
void thread_start() {
  if (arena_share != 0) blockyard::adapters::populate_by_use(adapter, arena_share);
}

}  // namespace

extern "C" BY_API const by_adapter* by_adapter_get() { return &adapter; }

extern "C" BY_API size_t by_adapter_usable_size(void* block) { return malloc_usable_size(block); }
