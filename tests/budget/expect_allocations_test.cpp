// What the macros of expect_allocations.hpp let pass, what they fail, and what each failure says. GoogleTest's own way
// to expect failures catches them.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "blockyard/linux/expect_allocations.hpp"

namespace {

void* volatile block = nullptr;

void allocate() {
  block = std::malloc(100);
  std::free(block);
}

TEST(ExpectAllocations, a_block_that_allocates_nothing_passes_each_time) {
  std::vector<int> numbers(10);
  for (int run = 0; run < 100; ++run) {
    EXPECT_NO_ALLOCATIONS {
      for (int& number : numbers) ++number;
      EXPECT_EQ(numbers[0], run + 1);
    }
  }
}

TEST(ExpectAllocations, one_call_too_many_fails_and_says_how_many_there_were) {
  EXPECT_NONFATAL_FAILURE(
      EXPECT_NO_ALLOCATIONS { allocate(); }, "allocated 1 time on this thread, and may 0");
  EXPECT_ALLOCATIONS_LE(2) {
    allocate();
    allocate();
  }
  EXPECT_NONFATAL_FAILURE(
      EXPECT_ALLOCATIONS_LE(2) {
        for (int call = 0; call < 3; ++call) allocate();
      },
      "allocated 3 times");
}

TEST(ExpectAllocations, every_way_to_allocate_counts_once) {
  EXPECT_NONFATAL_FAILURE(
      EXPECT_NO_ALLOCATIONS {
        block = std::calloc(3, 5);
        block = std::realloc(block, 1'000);
        std::free(block);
        int* volatile made = new int(3);
        delete made;
        const std::unique_ptr<int[]> many(new int[100]);
        block = many.get();
      },
      "allocated 4 times");
}

#if !defined(__SANITIZE_THREAD__)  // which tells of no aligned allocation
TEST(ExpectAllocations, aligned_allocations_count) {
  EXPECT_NONFATAL_FAILURE(
      EXPECT_NO_ALLOCATIONS {
        block = std::aligned_alloc(64, 128);
        std::free(block);
      },
      "allocated 1 time");
}
#endif

TEST(ExpectAllocations, a_compiler_that_knows_malloc_takes_no_older_count) {
  EXPECT_NONFATAL_FAILURE(
      EXPECT_NO_ALLOCATIONS {
        block = std::malloc(7);
        std::free(block);
      },
      "allocated 1 time");
}

TEST(ExpectAllocations, other_threads_do_not_count) {
  std::atomic<bool> stop{false};
  std::atomic<int> calls{0};
  std::thread other([&] {
    while (!stop) {
      void* const own = std::malloc(10);
      ++calls;
      std::free(own);
    }
  });
  EXPECT_NO_ALLOCATIONS {
    while (calls < 1'000) std::this_thread::yield();
  }
  stop = true;
  other.join();
}

TEST(ExpectAllocations, what_happens_at_first_use_only_is_told_apart) {
  std::vector<int> kept;
  EXPECT_NO_ALLOCATIONS_AGAIN(3) {
    kept.clear();
    kept.resize(100);
  }
  int runs = 0;
  EXPECT_NONFATAL_FAILURE(
      EXPECT_NO_ALLOCATIONS_AGAIN(3) {
        for (int call = 2 - ++runs; call < 2; ++call) allocate();
      },
      "that was run 2, and 1 in the first");
}

TEST(ExpectAllocations, a_block_left_early_is_checked_and_one_left_by_an_exception_is_not) {
  EXPECT_NONFATAL_FAILURE(
      EXPECT_NO_ALLOCATIONS {
        allocate();
        break;
      },
      "allocated 1 time");
  const auto throws = [] {
    EXPECT_NO_ALLOCATIONS { throw std::runtime_error("which allocates"); }
  };
  EXPECT_THROW(throws(), std::runtime_error);
}

TEST(ExpectAllocations, blocks_nest_and_the_inner_one_costs_the_outer_one_nothing) {
  EXPECT_ALLOCATIONS_LE(1) {
    EXPECT_NO_ALLOCATIONS {}
    allocate();
  }
}

}  // namespace
