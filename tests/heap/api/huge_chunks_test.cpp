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
  while (!trials.next_is_huge(0, false)) {
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

TEST(HugePageTrials, DearOnesAreWantedForLargeBlocksWhilePopulatingHasTakenLittleTime) {
  HugePageTrials trials;
  std::uint64_t now = 1'000'000'000'000;
  const auto populate = [&] {
    const bool huge = trials.next_is_huge(now, true);
    const std::uint64_t took = huge ? dear : 1'000'000;
    if (huge) {
      trials.took(took);
    }
    trials.spend(took);
    return huge;
  };
  EXPECT_TRUE(populate());
  EXPECT_TRUE(populate());  // some are allowed at once
  for (int chunk = 0; chunk < 4; ++chunk) {
    EXPECT_FALSE(populate());
  }
  EXPECT_FALSE(trials.next_is_huge(now, false));
  std::uint64_t huge = 0;
  constexpr std::uint64_t seconds = 100;
  for (std::uint64_t step = 0; step < seconds * 100; ++step) {
    now += 10'000'000;
    huge += step % 25 == 0 && populate() ? 1u : 0u;
  }
  EXPECT_GT(huge, seconds / 4);  // not only the trials
  EXPECT_LT(huge * dear, seconds * 1'000'000'000 / HugePageTrials::allowed_part * 3 / 2);
}

// Whoever touches a long block page by page waits for the translation of each small page.
TEST(PageHeap, LongBlocksComeFromHugePagesAndSlabsFromSmallOnes) {
  by_heap_set(BY_HEAP_JANITOR, 0);
  by_heap_trim();  // not every place of a long run is looked at
  PageHeap& pages = process_heap.pages;
  constexpr auto chunk = static_cast<std::uint32_t>(pages_per_chunk);
  for (int pair = 0; pair < 4; ++pair) {
    const PageRun one = pages.allocate(chunk, chunk, Prefer::raw, PageState::in_work);
    const PageRun other = pages.allocate(chunk, chunk, Prefer::raw, PageState::in_work);
    ASSERT_EQ(one.length + other.length, 2 * chunk);
    give_back(one.first, 1);  // a part of it: it asks for small pages from now on
    ASSERT_FALSE(may_be_huge(one.first, chunk));
    pages.free(one.first, PageState::free_ready, 0);
    pages.free(other.first, PageState::free_ready, 0);
    const PageRun block = pages.allocate(PageHeap::reserve_run, 1, Prefer::ready, PageState::used_block);
    const PageRun slab = pages.allocate(4, 4, Prefer::small_pages, PageState::used_slab);
    EXPECT_TRUE(may_be_huge(block.first, block.length));
    EXPECT_FALSE(may_be_huge(slab.first, slab.length));
    EXPECT_EQ(block.from, PageState::free_ready);
    EXPECT_EQ(slab.from, PageState::free_ready);
    EXPECT_EQ(pages.check(), nullptr);
    pages.free(block.first, PageState::free_ready, 0);
    pages.free(slab.first, PageState::free_ready, 0);
  }
  by_heap_trim();
  by_heap_set(BY_HEAP_JANITOR, 1);
}

TEST(PageHeap, LongBlocksFromHugePagesAreAlignedBeyondAHugePage) {
  by_heap_set(BY_HEAP_JANITOR, 0);
  by_heap_trim();
  PageHeap& pages = process_heap.pages;
  constexpr auto chunk = static_cast<std::uint32_t>(pages_per_chunk);
  const PageRun run = pages.allocate(8 * chunk, 4 * chunk, Prefer::raw, PageState::in_work);
  ASSERT_EQ(run.length, 8 * chunk);
  give_back(run.first, 1);  // the only places so aligned ask for small pages
  give_back(run.first + 4 * chunk, 1);
  pages.free(run.first, PageState::free_ready, 0);
  const PageRun block = pages.allocate(PageHeap::reserve_run, 4 * chunk, Prefer::ready, PageState::used_block);
  EXPECT_EQ(block.length, PageHeap::reserve_run);
  EXPECT_EQ(block.first % (4 * chunk), 0u);
  EXPECT_EQ(pages.check(), nullptr);
  pages.free(block.first, PageState::free_ready, 0);
  by_heap_trim();
  by_heap_set(BY_HEAP_JANITOR, 1);
}

// The reserve's lowest point is what the program took at most before it gave some back.
TEST(PageHeap, RemembersHowLowTheReserveWas) {
  ASSERT_EQ(by_heap_prefault(std::size_t{8} << 20), 0);
  by_heap_set(BY_HEAP_JANITOR, 0);
  PageHeap& pages = process_heap.pages;
  pages.take_lowest();
  const std::uint64_t before = pages.reserve_pages();
  ASSERT_GE(before, 2 * PageHeap::reserve_run);
  const PageRun run = pages.allocate(PageHeap::reserve_run, 1, Prefer::ready, PageState::used_block);
  ASSERT_EQ(run.from, PageState::free_ready);
  pages.free(run.first, PageState::free_ready, 0);
  const std::uint64_t lowest = pages.take_lowest().reserve;
  EXPECT_LE(lowest, before - PageHeap::reserve_run);
  EXPECT_GE(lowest, before - 2 * PageHeap::reserve_run);  // merging runs and cutting them is no fall
  EXPECT_EQ(pages.take_lowest().reserve, pages.reserve_pages());
  by_heap_set(BY_HEAP_JANITOR, 1);
}

}  // namespace
