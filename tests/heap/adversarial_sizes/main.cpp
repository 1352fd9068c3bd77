// Why: Robson's sequences make any allocator that cannot move blocks fragment. Free all but every eighth block of one
// size, go on with the next larger size, and memory must stay within the bound that docs/reference/bounds.md states:
// for small blocks every size class keeps at most its own peak, so that the sum over classes bounds it; pages merge
// again when slabs empty.
#include <vector>

#include "behaviour.hpp"

#if BLOCKYARD_CHECKED  // gives one small block in 512 pages of its own
constexpr std::uint64_t on_own_pages = std::uint64_t{8} << 20;
#else
constexpr std::uint64_t on_own_pages = 0;
#endif

int main() {
  std::vector<void*> kept;
  std::uint64_t peak_sum = 0;
  std::uint64_t committed = 0;
  for (std::size_t size = 16; size <= 8192; size *= 2) {
    const std::size_t count = (std::size_t{8} << 20) / size;
    std::vector<void*> blocks(count);
    for (void*& block : blocks) {
      block = std::malloc(size);
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (i % 8 == 0) {
        kept.push_back(blocks[i]);
      } else {
        std::free(blocks[i]);
      }
    }
    peak_sum += std::uint64_t{8} << 20;
    const by_heap_statistics now = behaviour::statistics();
    committed = now.committed;
    // The vectors of this test and the reserve are the rest.
    behaviour::require(now.used <= peak_sum * 9 / 8 + (std::uint64_t{24} << 20) + on_own_pages,
                       "small blocks took more than the sum of the peaks of their size classes");
  }
  for (void* block : kept) {
    std::free(block);
  }
  behaviour::require_sound_heap();
  // All slabs but one of each class are free again, so one run of pages must hold what eighty blocks of 1 MiB need.
  // What was committed when they were not: where the test takes long some of it has gone back since.
  std::vector<void*> large;
  for (int i = 0; i < 80; ++i) {
    large.push_back(std::malloc(std::size_t{1} << 20));
  }
  const by_heap_statistics after = behaviour::statistics();
  behaviour::require(after.committed <= committed + (std::uint64_t{48} << 20),
                     "pages of freed small blocks were not reused for large ones");
  for (void* block : large) {
    std::free(block);
  }
  behaviour::require_sound_heap();
}
