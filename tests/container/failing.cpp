// The test program's operator new, which fails when blocks do.
#include "failing.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

#include "block/watch.hpp"
#include "blockyard/block.h"

namespace blockyard {
namespace {

constinit std::atomic<std::size_t> alive{0};

// Before the first block, since the process decides once whether it has checks.
__attribute__((constructor(101))) void watch_this_process() {
  static char setting[] = "BLOCKYARD_CHECKS=1";
  putenv(setting);
}

}  // namespace

void Failing::fail_after(int countdown) { block::watch_fail_after(countdown); }
void Failing::never_fail() { block::watch_fail_after(-1); }

std::size_t Failing::live() {
  by_block_statistics blocks;
  by_static_block_get_statistics(0, &blocks);
  return alive + blocks.live_blocks;
}

}  // namespace blockyard

void* operator new(std::size_t bytes) {
  void* const block = blockyard::block::watch_fails_now() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (block == nullptr) {
    throw std::bad_alloc();
  }
  ++blockyard::alive;
  return block;
}
// std::stable_sort calls this, and goes on without the memory.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* block) noexcept {
  if (block != nullptr) {
    --blockyard::alive;
    std::free(block);
  }
}
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { operator delete(block); }
