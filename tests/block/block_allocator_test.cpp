// BlockAllocator, its C functions, block_resource and blockyard::allocator.
#include "blockyard/block_allocator.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <memory_resource>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "blockyard/allocator.hpp"
#include "blockyard/block.h"
#include "blockyard/block_resource.hpp"
#include "blockyard/paged_allocator.hpp"
#include "watched.hpp"

namespace blockyard {
namespace {

std::vector<void*> take(BlockAllocator& blocks, std::size_t count) {
  std::vector<void*> taken(count);
  for (void*& block : taken) {
    block = blocks.allocate();
  }
  return taken;
}

void free_all(BlockAllocator& blocks, const std::vector<void*>& taken) {
  for (void* const block : taken) {
    blocks.free(block);
  }
}

TEST(BlockAllocator, holds_nothing_before_its_first_block) {
  const BlockAllocator blocks(24, 8);
  EXPECT_EQ(blocks.statistics().held_bytes, 0u);
  EXPECT_TRUE(blocks.invariants_hold());
  EXPECT_EQ(sizeof blocks, 24u);
}

TEST(BlockAllocator, honours_size_and_alignment_of_every_shape) {
  for (const std::size_t size : {1u, 8u, 24u, 100u, 4000u, 100000u, 1u << 20}) {
    for (const std::size_t alignment : {1u, 8u, 64u, 4096u, 32768u}) {
      BlockAllocator blocks(size, alignment);
      std::set<std::uintptr_t> seen;
      for (int i = 0; i < 20; ++i) {
        void* const block = blocks.allocate();
        ASSERT_NE(block, nullptr) << size << " at " << alignment;
        const auto address = reinterpret_cast<std::uintptr_t>(block);
        EXPECT_EQ(address % alignment, 0u);
        const auto after = seen.lower_bound(address);
        EXPECT_TRUE(after == seen.end() || *after - address >= size);
        seen.insert(address);
      }
      EXPECT_TRUE(blocks.invariants_hold());
    }
  }
}

TEST(BlockAllocator, refuses_blocks_beyond_its_bounds) {
  EXPECT_EQ(BlockAllocator((1 << 20) + 1, 8).allocate(), nullptr);
  EXPECT_EQ(BlockAllocator(8, 3).allocate(), nullptr);
  EXPECT_EQ(BlockAllocator(8, 65536).allocate(), nullptr);
}

TEST(BlockAllocator, cuts_blocks_in_address_order) {
  SKIP_IF_WATCHED();
  BlockAllocator blocks(32, 8);
  const std::vector<void*> taken = take(blocks, 900);
  for (std::size_t i = 1; i < taken.size(); ++i) {
    EXPECT_EQ(static_cast<char*>(taken[i]) - static_cast<char*>(taken[i - 1]), 32);
  }
}

TEST(BlockAllocator, is_in_address_order_again_after_frees_in_random_order) {
  SKIP_IF_WATCHED();
  BlockAllocator blocks(32, 8);
  std::vector<void*> taken = take(blocks, 100000);
  std::shuffle(taken.begin(), taken.end(), std::mt19937(1));
  free_all(blocks, taken);
  taken = take(blocks, 100000);
  std::size_t adjacent = 0;
  for (std::size_t i = 1; i < taken.size(); ++i) {
    adjacent += static_cast<char*>(taken[i]) - static_cast<char*>(taken[i - 1]) == 32;
  }
  EXPECT_GT(adjacent, 99000u);
}

TEST(BlockAllocator, a_slab_whose_blocks_came_and_went_serves_counts_and_is_given_back_like_any_other) {
  SKIP_IF_WATCHED();
  BlockAllocator blocks(32, 8);
  for (int i = 0; i < 100; ++i) {
    blocks.free(blocks.allocate());
    ASSERT_EQ(blocks.statistics().live_blocks, 0u);
    ASSERT_TRUE(blocks.invariants_hold());
  }
  for (const std::size_t count : {1u, 3u, 900u, 1024u, 5000u}) {
    std::vector<void*> taken = take(blocks, count);
    EXPECT_EQ(std::set<void*>(taken.begin(), taken.end()).size(), count);
    EXPECT_EQ(blocks.statistics().live_blocks, count);
    ASSERT_TRUE(blocks.invariants_hold());
    std::shuffle(taken.begin(), taken.end(), std::mt19937(1));
    free_all(blocks, taken);
    blocks.free(blocks.allocate());
    EXPECT_EQ(blocks.statistics().live_blocks, 0u);
    ASSERT_TRUE(blocks.invariants_hold());
  }
  blocks.free(blocks.allocate());
  blocks.trim();
  EXPECT_EQ(blocks.statistics().held_bytes, 0u);
  EXPECT_TRUE(blocks.invariants_hold());
}

// Else a container that is cleared and filled again would be walked more slowly than at first.
TEST(BlockAllocator, slabs_emptied_in_order_are_filled_in_order_again) {
  SKIP_IF_WATCHED();
  BlockAllocator blocks(32, 8);
  const std::vector<void*> first = take(blocks, 100000);
  const std::size_t pages = blocks.statistics().pages;
  free_all(blocks, first);
  ASSERT_TRUE(blocks.invariants_hold());
  const std::vector<void*> again = take(blocks, 100000);
  std::size_t backward = 0;
  for (std::size_t i = 1; i < again.size(); ++i) {
    backward += std::less<>()(again[i], again[i - 1]);
  }
  EXPECT_LE(backward, pages);  // some hundred slabs
  ASSERT_TRUE(blocks.invariants_hold());
}

TEST(BlockAllocator, blocks_freed_in_order_are_not_written_to_and_are_handed_out_in_order_again) {
  SKIP_IF_WATCHED();
  BlockAllocator blocks(32, 8);
  const std::vector<void*> taken = take(blocks, 2 * 1024);  // two slabs, wholly
  for (void* const block : taken) {
    std::memset(block, 7, 32);
  }
  for (std::size_t i = 0; i < 600; ++i) {
    blocks.free(taken[i]);
    if (i % 97 == 0) {
      ASSERT_TRUE(blocks.invariants_hold());
    }
  }
  for (std::size_t i = 0; i < 600; ++i) {
    EXPECT_EQ(static_cast<unsigned char*>(taken[i])[0], 7u);
  }
  EXPECT_EQ(blocks.statistics().live_blocks, 2u * 1024 - 600);
  for (std::size_t i = 0; i < 600; ++i) {
    ASSERT_EQ(blocks.allocate(), taken[i]);
  }
  EXPECT_TRUE(blocks.invariants_hold());
  EXPECT_EQ(blocks.statistics().peak_blocks, 2u * 1024);
}

TEST(BlockAllocator, takes_pages_that_double) {
  SKIP_IF_WATCHED();
  BlockAllocator blocks(64, 8);
  std::vector<std::size_t> steps;
  std::size_t held = 0;
  for (int i = 0; i < 200000; ++i) {
    ASSERT_NE(blocks.allocate(), nullptr);
    const std::size_t now = i % 100 == 0 ? blocks.statistics().held_bytes : held;
    if (now != held) {
      steps.push_back(now - held);
      held = now;
    }
  }
  ASSERT_GE(steps.size(), 9u);
  for (std::size_t i = 1; i < 8; ++i) {
    EXPECT_EQ(steps[i], 2 * steps[i - 1]);
  }
  EXPECT_EQ(steps[8], steps[7]) << "a page is at most 4 MiB";
}

TEST(BlockAllocator, gives_pages_back_and_keeps_at_most_half) {
  SKIP_IF_WATCHED();
  BlockAllocator blocks(64, 8);
  const std::vector<void*> taken = take(blocks, 500000);
  const std::size_t peak = blocks.statistics().held_bytes;
  free_all(blocks, taken);
  EXPECT_LE(blocks.statistics().held_bytes, peak / 2 + (std::size_t{4} << 20));
  EXPECT_GT(blocks.statistics().held_bytes, 0u);
  blocks.trim();
  EXPECT_EQ(blocks.statistics().held_bytes, 0u);
  EXPECT_TRUE(blocks.invariants_hold());
}

TEST(BlockAllocator, does_not_ping_pong_around_a_page_border) {
  SKIP_IF_WATCHED();
  BlockAllocator blocks(64, 8);
  const std::vector<void*> taken = take(blocks, 300000);
  const std::size_t pages = blocks.statistics().pages;
  for (int round = 0; round < 1000; ++round) {
    void* const block = blocks.allocate();
    blocks.free(block);
  }
  EXPECT_EQ(blocks.statistics().pages, pages);
}

TEST(BlockAllocator, reset_frees_everything_and_starts_in_order_again) {
  BlockAllocator blocks(48, 16);
  for (int round = 0; round < 5; ++round) {
    take(blocks, 20000);
    blocks.reset();
    EXPECT_EQ(blocks.statistics().live_blocks, 0u);
    EXPECT_TRUE(blocks.invariants_hold());
  }
}

TEST(BlockAllocator, counts_live_and_peak) {
  BlockAllocator blocks(24, 8);
  std::vector<void*> taken = take(blocks, 1000);
  for (int i = 0; i < 400; ++i) {
    blocks.free(taken.back());
    taken.pop_back();
  }
  const by_block_statistics statistics = blocks.statistics();
  EXPECT_EQ(statistics.live_blocks, 600u);
  EXPECT_EQ(statistics.live_bytes, 600u * 24);
  EXPECT_EQ(statistics.peak_blocks, 1000u);
  EXPECT_EQ(statistics.block_bytes, 24u);
}

TEST(BlockAllocator, blocks_of_twelve_bytes_lie_side_by_side_and_a_chain_of_them_serves_again) {
  SKIP_IF_WATCHED();
  BlockAllocator blocks(12, 4);
  EXPECT_EQ(blocks.block_bytes(), 12u);
  std::vector<void*> taken = take(blocks, 5000);
  EXPECT_EQ(static_cast<char*>(taken[1]) - static_cast<char*>(taken[0]), 12);
  for (std::size_t i = 0; i + 1 < taken.size(); ++i) {
    block::set_chain_next(taken[i], taken[i + 1], 12);
  }
  blocks.free_chain(taken.front(), taken.back(), taken.size());
  EXPECT_EQ(blocks.statistics().live_blocks, 0u);
  std::vector<void*> again = take(blocks, 10000);
  EXPECT_NE(std::search(again.begin(), again.end(), taken.begin(), taken.end()), again.end());
  EXPECT_TRUE(blocks.invariants_hold());
  free_all(blocks, again);
  blocks.trim();
  EXPECT_EQ(blocks.statistics().held_bytes, 0u);
}

TEST(BlockAllocator, a_chain_is_freed_at_once_and_handed_out_in_its_order) {
  SKIP_IF_WATCHED();
  BlockAllocator blocks(32, 8);
  std::vector<void*> taken = take(blocks, 3000);
  std::shuffle(taken.begin(), taken.end(), std::mt19937(1));
  for (std::size_t i = 0; i + 1 < taken.size(); ++i) {
    block::set_chain_next(taken[i], taken[i + 1], blocks.block_bytes());
  }
  blocks.free_chain(taken.front(), taken.back(), taken.size());
  EXPECT_EQ(blocks.statistics().live_blocks, 0u);
  std::vector<void*> again = take(blocks, 5000);
  EXPECT_NE(std::search(again.begin(), again.end(), taken.begin(), taken.end()), again.end());
  EXPECT_TRUE(blocks.invariants_hold());
}

TEST(BlockPool, works_from_c) {
  by_block_pool* const pool = by_block_pool_create(40, 0);
  ASSERT_NE(pool, nullptr);
  void* const block = by_block_pool_alloc(pool);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 16, 0u);
  by_block_pool_free(pool, nullptr);
  by_block_statistics statistics;
  by_block_pool_get_statistics(pool, &statistics);
  EXPECT_EQ(statistics.live_blocks, 1u);
  EXPECT_EQ(statistics.block_bytes, 48u);
  by_block_pool_free(pool, block);
  by_block_pool_reset(pool);
  by_block_pool_trim(pool);
  by_block_pool_destroy(pool);
  by_block_pool_destroy(nullptr);
}

TEST(BlockPool, refuses_impossible_shapes_with_einval) {
  errno = 0;
  EXPECT_EQ(by_block_pool_create(0, 8), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(by_block_pool_create(8, 12), nullptr);
  EXPECT_EQ(by_block_pool_create(std::size_t{2} << 20, 8), nullptr);
}

TEST(BlockResource, serves_pmr_containers_and_passes_large_requests_on) {
  struct Counting : std::pmr::memory_resource {
    std::size_t requests = 0;
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
      ++requests;
      return std::pmr::new_delete_resource()->allocate(bytes, alignment);
    }
    void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override {
      std::pmr::new_delete_resource()->deallocate(block, bytes, alignment);
    }
    bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
  } upstream;
  block_resource resource(&upstream);
  {
    std::pmr::map<int, std::pmr::string> map(&resource);
    for (int i = 0; i < 1000; ++i) {
      map[i] = "a text too long for the string itself";
    }
    EXPECT_EQ(resource.statistics().live_blocks, 2000u);
    EXPECT_EQ(upstream.requests, 0u);
    map[0] = std::pmr::string(1000, 'x');
    EXPECT_EQ(upstream.requests, 1u);
  }
  EXPECT_EQ(resource.statistics().live_blocks, 0u);
  void* const aligned = resource.allocate(40, 128);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 128, 0u);
  resource.release();
  EXPECT_EQ(resource.statistics().live_blocks, 0u);
}

TEST(BlockResource, a_request_beyond_the_address_space_goes_upstream_and_gets_no_small_block) {
  block_resource resource(std::pmr::null_memory_resource());
  for (const unsigned less : {0u, 1u, 14u, 15u, 16u, 500u, 4095u}) {
    for (const unsigned alignment : {1u, 16u, 512u, 4096u}) {
      EXPECT_THROW((void)resource.allocate(static_cast<std::size_t>(-1) - less, alignment), std::bad_alloc);
    }
  }
  EXPECT_EQ(resource.statistics().live_blocks, 0u);
}

TEST(StdAllocator, serves_the_standard_containers) {
  std::list<std::string, allocator<std::string>> list{"a", "b"};
  std::map<int, int, std::less<>, allocator<std::pair<const int, int>>> map;
  for (int i = 0; i < 1000; ++i) {
    map[i] = i;
  }
  std::vector<int, allocator<int>> array(1000, 7);
  auto moved = std::move(list);
  EXPECT_EQ(moved.size() + map.size() + array.size(), 2002u);
  EXPECT_TRUE(allocator<int>() == allocator<char>());
}

TEST(PagedAllocator, constructs_counts_and_destroys) {
  PagedAllocator<std::string> strings(16);
  std::vector<std::string*> made;
  for (int i = 0; i < 100; ++i) {
    made.push_back(strings.create("a text too long for the string itself"));
  }
  EXPECT_EQ(strings.live_blocks(), 100u);
  for (std::string* const text : made) {
    strings.destroy(text);
  }
  EXPECT_EQ(strings.live_blocks(), 0u);
}

TEST(PagedBlocks, blocks_of_no_bytes_differ_and_absurd_sizes_fail) {
  PagedBlocks empty(0, 1, 64);
  EXPECT_NE(empty.allocate(), empty.allocate());
  PagedBlocks pages_overflow(std::size_t{1} << 60, 8, 64);
  EXPECT_EQ(pages_overflow.allocate(), nullptr);
  PagedBlocks rounding_overflows(static_cast<std::size_t>(-1), 8, 64);
  EXPECT_EQ(rounding_overflows.allocate(), nullptr);
  PagedBlocks many(std::size_t{1} << 40, 8, static_cast<std::uint32_t>(-1));
  EXPECT_EQ(many.allocate(), nullptr);
}

}  // namespace
TEST(Allocator, more_objects_than_addresses_throw_as_with_the_standards_allocator) {
  EXPECT_THROW((void)blockyard::allocator<long>().allocate(static_cast<std::size_t>(-1) / 2),
               std::bad_array_new_length);
  // The standard library rounds such a size up to the alignment, which overflows.
  EXPECT_THROW((void)blockyard::allocator<char>().allocate(static_cast<std::size_t>(-1)), std::bad_array_new_length);
}

std::string leak_report() {
  std::FILE* const file = std::tmpfile();
  by_block_leak_report(fileno(file));
  std::string text(4096, '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

TEST(BlockAllocator, a_report_names_the_memory_that_has_a_name) {
  {
    BlockAllocator bullets(24, 8);
    BlockAllocator unnamed(24, 8);
    static_cast<void>(unnamed.allocate());
    bullets.set_name("bullets");
    EXPECT_STREQ(bullets.name(), "bullets");
    EXPECT_STREQ(bullets.statistics().name, "bullets");
    EXPECT_EQ(unnamed.name(), nullptr);
    EXPECT_EQ(unnamed.statistics().name, nullptr);
    EXPECT_EQ(leak_report().find("bullets"), std::string::npos) << "it holds nothing";
    std::vector<void*> taken;
    for (int i = 0; i < 4; ++i) {
      taken.push_back(bullets.allocate());
    }
    bullets.deallocate(taken.back());
    EXPECT_NE(leak_report().find("blockyard: pool bullets holds 3 blocks of 24 bytes (72 bytes)\n"), std::string::npos);
    block::set_chain_next(taken[0], taken[1], bullets.block_bytes());
    bullets.free_chain(taken[0], taken[1], 2);
    EXPECT_NE(leak_report().find("pool bullets holds 1 block of 24 bytes"), std::string::npos);
    bullets.set_name("shots");
    EXPECT_NE(leak_report().find("pool shots holds 1 block"), std::string::npos);
    EXPECT_EQ(leak_report().find("bullets"), std::string::npos);
  }
  EXPECT_EQ(leak_report().find("shots"), std::string::npos) << "it ended";
}

}  // namespace blockyard
