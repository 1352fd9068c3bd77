/// blockyard: the heap of library/include/blockyard/heap.h, linked in. Prefaulted: memory for the journal's peak is
/// populated before the replay starts, and nothing is purged (allocators.toml).
#include "blockyard/heap.h"

#include "support/setup.hpp"

namespace {

void* allocate_zeroed(size_t size) { return by_calloc(1, size); }
void* reallocate(void* block, size_t, size_t, size_t size) { return by_realloc(block, size); }

int init(const by_adapter_setup* setup) {
  if (blockyard::adapters::check_abi(*setup) != 0) return 1;
  if (setup->populate == 0) return 0;
  const uint64_t bytes = blockyard::adapters::bytes_for_peak(*setup);
  if (by_heap_prefault(bytes) == 0) return 0;
  return blockyard::adapters::fail(*setup, "the system has no memory to populate for the journal's peak");
}

constexpr by_adapter adapter = blockyard::adapters::described({
    .name = "blockyard",
    .version = BLOCKYARD_VERSION,
    .init = init,
    .allocate = by_malloc,
    .allocate_zeroed = allocate_zeroed,
    .allocate_aligned = by_aligned_alloc,
    .reallocate = reallocate,
    .free = by_free,
});

}  // namespace

extern "C" BY_API const by_adapter* by_adapter_get() { return &adapter; }

extern "C" BY_API size_t by_adapter_usable_size(void* block) { return by_usable_size(block); }

extern "C" BY_API uint32_t by_adapter_counters(by_adapter_counter* counters, uint32_t most) {
  by_heap_statistics now;
  by_heap_get_statistics(&now);
  const by_adapter_counter all[] = {
      {"ready_misses_small", now.ready_misses_small},
      {"ready_misses_medium", now.ready_misses_medium},
      {"large_blocks", now.large_blocks},
      {"populated_by_janitor_bytes", now.populated_by_janitor},
      {"populated_by_program_bytes", now.populated_by_program},
      {"purged_bytes", now.purged},
  };
  uint32_t filled = 0;
  for (const by_adapter_counter& counter : all) {
    if (filled < most) counters[filled++] = counter;
  }
  return filled;
}
