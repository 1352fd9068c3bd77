// The one rule of purging: what nobody needed for a while goes back, less what is kept.
#include <gtest/gtest.h>

#include <cstdint>

#include "heap/slab_tables.hpp"
#include "pages/purge.hpp"

namespace {

using namespace blockyard::heap;

constinit PageHeap pages(region);
constinit HugePages huge_pages(region);
constexpr std::uint64_t purge_ms = 500;
constexpr std::uint16_t purge_ticks = purge_ms / 16;
constexpr std::uint64_t reserve = 1'024;
constexpr std::uint64_t used = 10'000;  // so little that the reserve is what is kept

// A second of rounds each 16 ms, in which so much is free.
void pass_a_second(Purge& purging, std::uint16_t& tick, std::uint64_t free) {
  for (int round = 0; round < 62; ++round) {
    purging.follow(++tick, {free, free}, reserve, purge_ticks);
  }
}

TEST(HeapPurging, what_was_free_all_the_time_goes_back_but_for_the_reserve) {
  Purge purging(pages, huge_pages);
  std::uint16_t tick = 0;
  pass_a_second(purging, tick, 5'000);
  EXPECT_EQ(purging.surplus(used, reserve), 5'000 - reserve);
  EXPECT_EQ(purging.surplus(used, 6'000), 0u);
}

TEST(HeapPurging, what_was_needed_once_stays_for_the_purge_time) {
  Purge purging(pages, huge_pages);
  std::uint16_t tick = 0;
  pass_a_second(purging, tick, 5'000);
  purging.note({reserve + 10, reserve});  // a burst took the rest, and gave it back
  for (std::uint64_t ms = 16; ms + 32 < purge_ms; ms += 16) {
    purging.follow(++tick, {5'000, 5'000}, reserve, purge_ticks);
    EXPECT_LE(purging.surplus(used, reserve), 10u);
  }
  pass_a_second(purging, tick, 5'000);
  EXPECT_EQ(purging.surplus(used, reserve), 5'000 - reserve);
}

TEST(HeapPurging, nothing_goes_back_before_the_purge_time_is_over) {
  Purge purging(pages, huge_pages);
  std::uint16_t tick = 0;
  for (std::uint64_t ms = 16; ms < purge_ms; ms += 16) {
    purging.follow(++tick, {5'000, 5'000}, reserve, purge_ticks);
    EXPECT_EQ(purging.surplus(used, reserve), 0u);
  }
}

TEST(HeapPurging, an_eighth_of_much_that_is_in_use_stays_free) {
  Purge purging(pages, huge_pages);
  std::uint16_t tick = 0;
  pass_a_second(purging, tick, 50'000);
  const std::uint64_t gib = (std::uint64_t{1} << 30) / page_bytes;
  EXPECT_EQ(purging.surplus(gib, reserve), 50'000 - gib * 15 / 16 / 8);
}

TEST(HeapPurging, no_more_stays_than_is_allowed_where_memory_is_scarce) {
  Purge purging(pages, huge_pages);
  std::uint16_t tick = 0;
  pass_a_second(purging, tick, 50'000);
  const std::uint64_t gib = (std::uint64_t{1} << 30) / page_bytes;
  EXPECT_EQ(purging.surplus(gib, reserve, 300), 50'000u - 300);
}

TEST(HeapPurging, the_tick_may_wrap) {
  Purge purging(pages, huge_pages);
  std::uint16_t tick = 65'500;
  pass_a_second(purging, tick, 5'000);
  pass_a_second(purging, tick, 3'000);
  EXPECT_EQ(purging.surplus(used, reserve), 3'000 - reserve);
}

}  // namespace
