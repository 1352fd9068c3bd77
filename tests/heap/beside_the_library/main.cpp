// Why: a program that links libblockyard runs on the preloaded heap as any other does. What the library itself
// allocates must come from that heap too, and by_frame_end must do that heap's work, though libblockyard has one of its
// own. That one serves nobody, and takes no memory.
#include <malloc.h>

#include "behaviour.hpp"
#include "blockyard/block.h"
#include "blockyard/frame.h"
#include "blockyard/lifetime.h"

namespace {

// Regions begin a megabyte behind a multiple of 1 GiB. A guard page may cut what is mapped there.
int regions() {
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  behaviour::require(maps != nullptr, "what is mapped can't be read");
  int found = 0;
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long begin = 0;
    unsigned long end = 0;
    if (std::sscanf(line, "%lx-%lx rw-p", &begin, &end) == 2 && begin % (1ul << 30) == 1ul << 20) {
      ++found;
    }
  }
  std::fclose(maps);
  return found;
}

}  // namespace

int main() {
  using behaviour::require;
  require(regions() == 1, "the heap of libblockyard took memory beside the preloaded one");
  constexpr std::size_t size = 5'000'000;
  void* block = by_malloc(size);
  require(block != nullptr && malloc_usable_size(block) >= size, "by_malloc takes from another heap than malloc");
  std::free(block);
  const std::uint64_t live = behaviour::statistics().live;
  block = by_lifetime_alloc(size, 16, BY_PERSISTENT);
  require(block != nullptr && behaviour::statistics().live >= live + size,
          "a lifetime takes from another heap than malloc");
  by_lifetime_free(block, BY_PERSISTENT);

  by_block_pool* const pool = by_block_pool_create(48, 16);
  block = pool != nullptr ? by_block_pool_alloc(pool) : nullptr;
  require(block != nullptr, "the library's pools do not work beside the heap");
  by_block_pool_free(pool, block);
  by_block_pool_destroy(pool);

  require(by_heap_set(BY_HEAP_JANITOR, 0) == 0, "the janitor can't be switched off");
  by_heap_reserve(16 << 20);
  by_frame_end(10'000'000'000);
  const std::uint64_t ready = behaviour::statistics().ready;
  require(ready >= std::uint64_t{16} << 20, "by_frame_end does not do the heap's work");
  block = std::malloc(300'000);
  require(behaviour::statistics().ready < ready, "malloc does not take what by_frame_end made ready");
  std::free(block);
  behaviour::require_sound_heap();
}
