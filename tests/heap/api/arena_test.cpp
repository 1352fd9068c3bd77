// Arenas: everything goes at once, and nothing of it stays.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "blockyard/heap.h"
#include "heap/statistics.hpp"

namespace {

TEST(Arena, destroying_it_frees_small_medium_and_large_blocks) {
  const std::uint64_t before = statistics().used;
  by_arena* const heap = by_arena_create();
  ASSERT_NE(heap, nullptr);
  for (std::size_t i = 0; i < 20'000; ++i) {
    ASSERT_NE(by_arena_alloc(heap, i % 9000), nullptr);
  }
  std::memset(by_arena_alloc(heap, std::size_t{5} << 20), 1, std::size_t{5} << 20);
  ASSERT_NE(by_arena_aligned_alloc(heap, 4096, 70'000), nullptr);
  EXPECT_GT(statistics().used, before + (std::size_t{60} << 20));
  by_arena_destroy(heap);
  EXPECT_LE(statistics().used, before + (std::size_t{1} << 20));
  EXPECT_EQ(by_heap_check(), nullptr);
}

TEST(Arena, its_blocks_may_be_freed_one_by_one_by_any_thread) {
  by_arena* const heap = by_arena_create();
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < 5'000; ++i) {
    blocks.push_back(by_arena_alloc(heap, i * 5));
  }
  std::thread([&] {
    for (std::size_t i = 0; i < blocks.size(); i += 2) {
      by_free(blocks[i]);
    }
  }).join();
  for (std::size_t i = 1; i < blocks.size(); i += 2) {
    by_free(blocks[i]);
  }
  for (std::size_t i = 0; i < 5'000; ++i) {
    ASSERT_NE(by_arena_alloc(heap, i), nullptr);
  }
  EXPECT_EQ(by_heap_check(), nullptr);
  by_arena_destroy(heap);
  EXPECT_EQ(by_heap_check(), nullptr);
}

TEST(Arena, its_thread_frees_without_the_detour_of_a_remote_free) {
  by_arena* const heap = by_arena_create();
  void* const first = by_arena_alloc(heap, 100);
  by_arena_free(heap, first);
#if !BLOCKYARD_CHECKED  // there a freed block is not handed out again at once
  EXPECT_EQ(by_arena_alloc(heap, 100), first);
#endif
  void* const large = by_arena_alloc(heap, 100'000);
  by_arena_free(heap, large);
  by_arena_free(heap, nullptr);
  void* const from_elsewhere = by_malloc(100);
  by_arena_free(heap, from_elsewhere);
  EXPECT_EQ(by_heap_check(), nullptr);
  by_arena_destroy(heap);
  EXPECT_EQ(by_heap_check(), nullptr);
}

TEST(Arena, a_destroyed_heap_is_used_again_and_destroying_null_is_nothing) {
  by_arena_destroy(nullptr);
  by_arena_destroy(by_arena_create());
  const std::uint64_t heaps = statistics().heaps;
  for (int i = 0; i < 1000; ++i) {
    by_arena* const heap = by_arena_create();
    ASSERT_NE(by_arena_alloc(heap, 100), nullptr);
    by_arena_destroy(heap);
  }
  EXPECT_LE(statistics().heaps, heaps + 1);
}

// A thread must not take the heap that was destroyed last for its own while others wait: the next arena would then
// be new every time.
TEST(Arena, heaps_do_not_multiply_where_threads_come_and_go_in_between) {
  std::vector<void*> left;
  const auto level_and_thread = [&] {
    by_arena_destroy(by_arena_create());
    std::thread([&] { left.push_back(by_malloc(100)); }).join();
  };
  level_and_thread();
  level_and_thread();  // the first thread may have the first arena's heap: none waits yet
  const std::uint64_t heaps = statistics().heaps;
  for (int i = 0; i < 200; ++i) {
    level_and_thread();
  }
  // One more where a thread begins while the background thread holds the heap that was left, to sweep it.
  EXPECT_LE(statistics().heaps, heaps + 1);
  for (void* block : left) {
    by_free(block);
  }
}

#if !defined(__SANITIZE_THREAD__)  // statistics are read while others write what they are read from: see heap.h
TEST(Arena, statistics_may_be_read_while_heaps_are_made) {
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done.load()) {
      statistics();
    }
  });
  std::vector<by_arena*> made;
  for (int i = 0; i < 2'000; ++i) {
    made.push_back(by_arena_create());
  }
  done = true;
  reader.join();
  for (by_arena* heap : made) {
    by_arena_destroy(heap);
  }
  EXPECT_EQ(by_heap_check(), nullptr);
}
#endif

TEST(Arena, calloc_is_zero_in_memory_that_another_heap_left) {
  by_arena* first = by_arena_create();
  for (int i = 0; i < 1000; ++i) {
    std::memset(by_arena_alloc(first, 300), 0xEE, 300);
  }
  by_arena_destroy(first);
  by_arena* const second = by_arena_create();
  for (int i = 0; i < 1000; ++i) {
    auto* const block = static_cast<unsigned char*>(by_arena_calloc(second, 3, 100));
    for (std::size_t k = 0; k < 300; ++k) {
      ASSERT_EQ(block[k], 0);
    }
  }
  by_arena_destroy(second);
}

}  // namespace
