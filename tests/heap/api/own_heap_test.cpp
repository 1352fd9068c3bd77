// Heaps of one's own: everything goes at once, and nothing of it stays.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "blockyard/heap.h"

namespace {

by_heap_statistics statistics() {
  by_heap_statistics values{};
  by_heap_read_statistics(&values);
  return values;
}

TEST(OwnHeap, DestroyingItFreesSmallMediumAndLargeBlocks) {
  const std::uint64_t before = statistics().used;
  by_heap* const heap = by_heap_create();
  ASSERT_NE(heap, nullptr);
  for (std::size_t i = 0; i < 20'000; ++i) {
    ASSERT_NE(by_heap_malloc(heap, i % 9000), nullptr);
  }
  std::memset(by_heap_malloc(heap, std::size_t{5} << 20), 1, std::size_t{5} << 20);
  ASSERT_NE(by_heap_aligned_alloc(heap, 4096, 70'000), nullptr);
  EXPECT_GT(statistics().used, before + (std::size_t{60} << 20));
  by_heap_destroy(heap);
  EXPECT_LE(statistics().used, before + (std::size_t{1} << 20));
  EXPECT_EQ(by_check(), nullptr);
}

TEST(OwnHeap, ItsBlocksMayBeFreedOneByOneByAnyThread) {
  by_heap* const heap = by_heap_create();
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < 5'000; ++i) {
    blocks.push_back(by_heap_malloc(heap, i * 5));
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
    ASSERT_NE(by_heap_malloc(heap, i), nullptr);
  }
  EXPECT_EQ(by_check(), nullptr);
  by_heap_destroy(heap);
  EXPECT_EQ(by_check(), nullptr);
}

TEST(OwnHeap, ItsThreadFreesWithoutTheDetourOfARemoteFree) {
  by_heap* const heap = by_heap_create();
  void* const first = by_heap_malloc(heap, 100);
  by_heap_free(heap, first);
#if !BLOCKYARD_CHECKED  // there a freed block is not handed out again at once
  EXPECT_EQ(by_heap_malloc(heap, 100), first);
#endif
  void* const large = by_heap_malloc(heap, 100'000);
  by_heap_free(heap, large);
  by_heap_free(heap, nullptr);
  void* const from_elsewhere = by_malloc(100);
  by_heap_free(heap, from_elsewhere);
  EXPECT_EQ(by_check(), nullptr);
  by_heap_destroy(heap);
  EXPECT_EQ(by_check(), nullptr);
}

TEST(OwnHeap, ADestroyedHeapIsUsedAgainAndDestroyingNullIsNothing) {
  by_heap_destroy(nullptr);
  by_heap_destroy(by_heap_create());
  const std::uint64_t heaps = statistics().heaps;
  for (int i = 0; i < 1000; ++i) {
    by_heap* const heap = by_heap_create();
    ASSERT_NE(by_heap_malloc(heap, 100), nullptr);
    by_heap_destroy(heap);
  }
  EXPECT_LE(statistics().heaps, heaps + 1);
}

// A thread must not take the heap that was destroyed last for its own while others wait: the next own heap would then
// be new every time.
TEST(OwnHeap, HeapsDoNotMultiplyWhereThreadsComeAndGoInBetween) {
  std::vector<void*> left;
  const auto level_and_thread = [&] {
    by_heap_destroy(by_heap_create());
    std::thread([&] { left.push_back(by_malloc(100)); }).join();
  };
  level_and_thread();
  const std::uint64_t heaps = statistics().heaps;
  for (int i = 0; i < 200; ++i) {
    level_and_thread();
  }
  EXPECT_LE(statistics().heaps, heaps + 1);
  for (void* block : left) {
    by_free(block);
  }
}

#if !defined(__SANITIZE_THREAD__)  // statistics are read while others write what they are read from: see heap.h
TEST(OwnHeap, StatisticsMayBeReadWhileHeapsAreMade) {
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done.load()) {
      statistics();
    }
  });
  std::vector<by_heap*> made;
  for (int i = 0; i < 2'000; ++i) {
    made.push_back(by_heap_create());
  }
  done = true;
  reader.join();
  for (by_heap* heap : made) {
    by_heap_destroy(heap);
  }
  EXPECT_EQ(by_check(), nullptr);
}
#endif

TEST(OwnHeap, CallocIsZeroInMemoryThatAnotherHeapLeft) {
  by_heap* first = by_heap_create();
  for (int i = 0; i < 1000; ++i) {
    std::memset(by_heap_malloc(first, 300), 0xEE, 300);
  }
  by_heap_destroy(first);
  by_heap* const second = by_heap_create();
  for (int i = 0; i < 1000; ++i) {
    auto* const block = static_cast<unsigned char*>(by_heap_calloc(second, 3, 100));
    for (std::size_t k = 0; k < 300; ++k) {
      ASSERT_EQ(block[k], 0);
    }
  }
  by_heap_destroy(second);
}

}  // namespace
