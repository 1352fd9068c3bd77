// When chunks are populated as huge pages: by what the last ones cost, which no test can make the system charge.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "blockyard/heap.h"
#include "heap/huge_chunks.hpp"
#include "heap/process_heap.hpp"

namespace {

using namespace blockyard::heap;

constexpr std::uint64_t cheap = 100'000;
constexpr std::uint64_t dear = 5'500'000;

// Chunks on small pages until the next trial.
std::uint32_t small_before_trial(HugePageTrials& trials) {
  std::uint32_t small = 0;
  while (!trials.next_is_huge()) {
    ++small;
  }
  return small;
}

TEST(HugePageTrials, CheapHugePagesAreAlwaysWanted) {
  HugePageTrials trials;
  for (int chunk = 0; chunk < 100; ++chunk) {
    ASSERT_EQ(small_before_trial(trials), 0u);
    trials.took(cheap);
  }
}

TEST(HugePageTrials, DearOnesAreTriedLessAndLessOftenButAlwaysAgain) {
  HugePageTrials trials;
  std::uint32_t before = 0;
  for (int trial = 0; trial < 10; ++trial) {
    trials.took(dear);
    const std::uint32_t small = small_before_trial(trials);
    EXPECT_GE(small, HugePageTrials::least_small);
    EXPECT_LE(small, HugePageTrials::most_small);
    EXPECT_GE(small, before);
    before = small;
  }
  EXPECT_EQ(before, HugePageTrials::most_small);
}

TEST(HugePageTrials, CheapOnesInBetweenAreForgivenSlowly) {
  HugePageTrials trials;
  for (int trial = 0; trial < 4; ++trial) {
    trials.took(dear);
    small_before_trial(trials);
  }
  trials.took(cheap);
  EXPECT_EQ(small_before_trial(trials), 0u);  // one that was cheap, and so the next is huge
  trials.took(dear);
  EXPECT_EQ(small_before_trial(trials), HugePageTrials::most_small);  // but half of them were not
  for (int trial = 0; trial < 8; ++trial) {
    trials.took(cheap);
  }
  trials.took(dear);
  EXPECT_EQ(small_before_trial(trials), HugePageTrials::least_small);
}

// The reserve's lowest point is what the program took at most before it gave some back.
TEST(PageHeap, RemembersHowLowTheReserveWas) {
  ASSERT_EQ(by_prefault(std::size_t{8} << 20), 0);
  by_heap_set(BY_HEAP_JANITOR, 0);
  PageHeap& pages = process_heap.pages;
  pages.take_lowest_reserve();
  const std::uint64_t before = pages.reserve_pages();
  ASSERT_GE(before, 2 * PageHeap::reserve_run);
  const PageRun run = pages.allocate(PageHeap::reserve_run, 1, Prefer::ready, PageState::used_block);
  ASSERT_EQ(run.from, PageState::free_ready);
  pages.free(run.first, PageState::free_ready, 0);
  const std::uint64_t lowest = pages.take_lowest_reserve();
  EXPECT_LE(lowest, before - PageHeap::reserve_run);
  EXPECT_GE(lowest, before - 2 * PageHeap::reserve_run);  // merging runs and cutting them is no fall
  EXPECT_EQ(pages.take_lowest_reserve(), pages.reserve_pages());
  by_heap_set(BY_HEAP_JANITOR, 1);
}

}  // namespace
