// Several threads at once: blocks cross threads, heaps cross threads, and everything adds up afterwards.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "blockyard/heap.h"
#include "heap/statistics.hpp"
#include "many.hpp"

namespace {

TEST(HeapThreads, blocks_exchanged_at_random_between_threads_keep_their_contents) {
  constexpr std::size_t slots = 512;
  std::vector<std::atomic<unsigned char*>> shared(slots);
  std::atomic<int> changed{0};
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 random(thread);
      for (int step = 0; step < 60'000; ++step) {
        const std::size_t size = 16 + random() % (random() % 50 == 0 ? 60'000 : 700);
        auto* const block = static_cast<unsigned char*>(by_malloc(size));
        const auto fill = static_cast<unsigned char>(random() | 1);
        std::memset(block, fill, 16);
        std::memcpy(block + 8, &size, sizeof size);
        block[by_usable_size(block) - 1] = fill;
        unsigned char* const other = shared[random() % slots].exchange(block, std::memory_order_acq_rel);
        if (other != nullptr) {
          if (by_usable_size(other) > 16 && other[by_usable_size(other) - 1] != other[0]) {
            changed.fetch_add(1);
          }
          by_free(other);
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (auto& place : shared) {
    by_free(place.load());
  }
  EXPECT_EQ(changed.load(), 0);
  EXPECT_EQ(by_heap_check(), nullptr);
}

TEST(HeapThreads, a_heap_left_by_one_thread_serves_the_next) {
  std::thread([] { by_free(by_malloc(100)); }).join();
  const std::uint64_t heaps = statistics().heaps;
  for (int i = 0; i < 100; ++i) {
    std::thread([] { by_free(by_malloc(100)); }).join();
  }
  // One more where a thread begins while the background thread holds the heap that was left, to sweep it.
  EXPECT_LE(statistics().heaps, heaps + 1);
}

#if !BLOCKYARD_CHECKED  // its quarantine keeps the last ones
TEST(HeapThreads, a_trim_sends_blocks_that_threads_hand_over_back_to_their_slabs) {
  const auto come_back = [] { return statistics().remote_frees_adopted + statistics().remote_frees_waiting; };
  const std::uint64_t before = come_back();
  const std::vector<void*> blocks = allocated(5'000, 48);
  std::thread([&] { free_all(blocks); }).join();
  by_heap_trim();
  // What the other thread has cached and deferred.
  EXPECT_GE(come_back() - before + 60 + 8, blocks.size());
  EXPECT_EQ(by_heap_check(), nullptr);
}
#endif

TEST(HeapThreads, remote_frees_come_back_to_their_owner) {
  const std::uint64_t used_before = statistics().used;
  for (int round = 0; round < 6; ++round) {
    const std::vector<void*> blocks = allocated(20'000, 64);
    std::thread([&] { free_all(blocks); }).join();
  }
  EXPECT_LE(statistics().used, used_before + 3 * 20'000 * 64);
  const std::uint64_t waiting = statistics().remote_frees_waiting;
  by_heap_frame_end(~std::uint64_t{0});  // all that there is to do
  // Heaps that other tests' threads left behind may hold some still; this thread's hold none.
  EXPECT_LT(statistics().remote_frees_waiting, waiting);
  EXPECT_EQ(by_heap_check(), nullptr);
}

}  // namespace
