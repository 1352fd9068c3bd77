// How long the janitor sleeps between two rounds.
#include <gtest/gtest.h>

#include <cstdint>

#include "heap/background/maintenance.hpp"

namespace {

using blockyard::heap::Round;
using blockyard::heap::RoundInterval;

constexpr std::uint64_t period = 1'000'000;

std::uint64_t after(RoundInterval& interval, const Round& round, int rounds) {
  std::uint64_t pause = 0;
  for (int turn = 0; turn < rounds; ++turn) {
    pause = interval.next(round, period);
  }
  return pause;
}

TEST(HeapRoundInterval, work_that_is_left_is_done_after_one_period) {
  RoundInterval interval;
  after(interval, {}, 100);
  EXPECT_EQ(interval.next({.more_to_do = true}, period), period);
}

TEST(HeapRoundInterval, naps_stay_short_while_memory_is_taken) {
  RoundInterval interval;
  EXPECT_EQ(after(interval, {.taken = 100, .spent = 1}, 100), RoundInterval::longest_busy_ns);
  EXPECT_LE(interval.next({.taken = 10'000, .spent = 16}, period), RoundInterval::shortest_ns);
}

TEST(HeapRoundInterval, an_idle_program_is_left_alone_for_longer_and_longer) {
  RoundInterval interval;
  after(interval, {.taken = 100, .spent = 1}, 100);
  EXPECT_EQ(after(interval, {}, 2), RoundInterval::longest_busy_ns);
  EXPECT_EQ(after(interval, {}, 100), RoundInterval::longest_idle_ns);
  EXPECT_LE(interval.next({.taken = 1}, period), RoundInterval::longest_busy_ns);
}

TEST(HeapRoundInterval, a_period_longer_than_any_nap_is_kept) {
  RoundInterval interval;
  EXPECT_EQ(interval.next({}, 500'000'000), 500'000'000u);
  EXPECT_EQ(interval.next({.taken = 1, .spent = 64}, 500'000'000), 500'000'000u);
}

}  // namespace
