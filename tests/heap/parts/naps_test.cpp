// How long the janitor sleeps between two rounds.
#include <gtest/gtest.h>

#include <cstdint>

#include "heap/background/pause.hpp"

namespace {

using blockyard::heap::Naps;
using blockyard::heap::Round;

constexpr std::uint64_t period = 1'000'000;

std::uint64_t after(Naps& naps, const Round& round, int rounds) {
  std::uint64_t pause = 0;
  for (int turn = 0; turn < rounds; ++turn) {
    pause = naps.next(round, period);
  }
  return pause;
}

TEST(HeapNaps, work_that_is_left_is_done_after_one_period) {
  Naps naps;
  after(naps, {}, 100);
  EXPECT_EQ(naps.next({.more_to_do = true}, period), period);
}

TEST(HeapNaps, naps_stay_short_while_memory_is_taken) {
  Naps naps;
  EXPECT_EQ(after(naps, {.taken = 100, .spent = 1}, 100), Naps::longest_nap_ns);
  EXPECT_LE(naps.next({.taken = 10'000, .spent = 16}, period), Naps::shortest_nap_ns);
}

TEST(HeapNaps, an_idle_program_is_left_alone_for_longer_and_longer) {
  Naps naps;
  after(naps, {.taken = 100, .spent = 1}, 100);
  EXPECT_EQ(after(naps, {}, 2), Naps::longest_nap_ns);
  EXPECT_EQ(after(naps, {}, 100), Naps::longest_sleep_ns);
  EXPECT_LE(naps.next({.taken = 1}, period), Naps::longest_nap_ns);
}

TEST(HeapNaps, a_period_longer_than_any_nap_is_kept) {
  Naps naps;
  EXPECT_EQ(naps.next({}, 500'000'000), 500'000'000u);
  EXPECT_EQ(naps.next({.taken = 1, .spent = 64}, 500'000'000), 500'000'000u);
}

}  // namespace
