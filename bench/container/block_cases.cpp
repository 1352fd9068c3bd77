// Allocators alone: a million blocks of 32 bytes allocated, walked, freed in order and at random, and allocated again.
#include <algorithm>
#include <cstdlib>
#include <foonathan/memory/memory_pool.hpp>
#include <foonathan/memory/namespace_alias.hpp>
#include <memory_resource>
#include <random>

#include "blockyard/block_allocator.hpp"
#include "blockyard/paged_allocator.hpp"
#include "blockyard/static_block_allocator.hpp"
#include "case.hpp"

namespace blockyard::bench {
namespace {

struct Payload {
  std::uint64_t words[4];
};

template <class Take, class Give>
void measure(std::size_t n, Take&& take, Give&& give) {
  std::vector<Payload*> blocks(n);
  const auto fill = [&] {
    for (std::size_t i = 0; i < n; ++i) {
      Payload* const block = static_cast<Payload*>(take());
      block->words[0] = i;
      blocks[i] = block;
    }
  };
  const auto walk = [&] {
    std::uint64_t sum = 0;
    for (const Payload* const block : blocks) {
      sum += block->words[0];
    }
    keep(sum);
  };
  const auto free_all = [&] {
    for (Payload* const block : blocks) {
      give(block);
    }
  };
  phase("allocate", n, fill);
  walk();
  phase("walk", n, walk);
  phase("free", n, free_all);
  phase("allocate_warm", n, fill);
  phase("free_warm", n, free_all);
  fill();
  std::mt19937 random(1);
  std::shuffle(blocks.begin(), blocks.end(), random);
  phase("free_random", n, free_all);
  phase("reallocate", n, fill);
  walk();
  phase("walk_again", n, walk);
  std::shuffle(blocks.begin(), blocks.end(), random);
  // Half of them, at random: no page is wholly free.
  for (std::size_t i = 0; i < n / 2; ++i) {
    give(blocks[i]);
  }
  phase("reallocate_half", n / 2, [&] {
    for (std::size_t i = 0; i < n / 2; ++i) {
      blocks[i] = static_cast<Payload*>(take());
      blocks[i]->words[0] = i;
    }
  });
  free_all();
  phase("pair", n, [&] {
    for (std::size_t i = 0; i < n; ++i) {
      void* const block = take();
      asm volatile("" ::"r"(block) : "memory");
      give(block);
    }
  });
}

void run_direct(std::size_t n) {
  BlockAllocator blocks(sizeof(Payload), alignof(Payload));
  measure(
      n, [&] { return blocks.allocate(); }, [&](void* block) { blocks.free(block); });
}
void run_static(std::size_t n) {
  using Blocks = StaticBlockAllocator<sizeof(Payload), alignof(Payload)>;
  measure(
      n, [] { return Blocks::allocate(); }, [](void* block) { Blocks::free(block); });
}
void run_paged(std::size_t n) {
  PagedBlocks blocks(sizeof(Payload), alignof(Payload));
  measure(
      n, [&] { return blocks.allocate(); }, [&](void* block) { blocks.free(block); });
}
void run_malloc(std::size_t n) {
  measure(
      n, [] { return std::malloc(sizeof(Payload)); }, [](void* block) { std::free(block); });
}
void run_pmr(std::size_t n) {
  std::pmr::unsynchronized_pool_resource pool;
  measure(
      n, [&] { return pool.allocate(sizeof(Payload), alignof(Payload)); },
      [&](void* block) { pool.deallocate(block, sizeof(Payload), alignof(Payload)); });
}
void run_foonathan(std::size_t n) {
  memory::memory_pool<> pool(sizeof(Payload), 1 << 20);
  measure(
      n, [&] { return pool.allocate_node(); }, [&](void* block) { pool.deallocate_node(block); });
}

}  // namespace

std::vector<Case> block_cases() {
  return {
      {"blocks", "BlockAllocator", run_direct}, {"blocks", "StaticBlockAllocator", run_static},
      {"blocks", "PagedAllocator", run_paged},  {"blocks", "malloc", run_malloc},
      {"blocks", "pmr-pool", run_pmr},          {"blocks", "foonathan", run_foonathan},
  };
}

}  // namespace blockyard::bench
