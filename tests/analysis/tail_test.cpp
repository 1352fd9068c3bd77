// Latencies beyond the tables are counted exactly, however many there are.
#include "samples/tail.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace blockyard::samples {
namespace {

using Counts = std::map<std::uint32_t, std::uint64_t>;

Counts counts_of(const Distribution& found) {
  Counts counts;
  std::uint32_t before = 0;
  for (std::size_t i = 0; i < found.ticks.size(); ++i) {
    EXPECT_TRUE(i == 0 || found.ticks[i] > before);
    before = found.ticks[i];
    counts[found.ticks[i]] = found.counts[i];
  }
  return counts;
}

class Tails : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(Tails, of_200_000_values_are_counted_exactly) {
  std::mt19937 random(7);
  std::uniform_int_distribution<std::uint32_t> values(0, GetParam());
  Counts expected;
  Tail tails[3];
  for (int i = 0; i < 200'000; ++i) {
    const std::uint32_t ticks = values(random);
    ++expected[ticks];
    tails[i % 7 == 0 ? 0 : i % 2 + 1].add(ticks);
  }
  TailSum sum;
  for (const Tail& tail : tails) sum.add(tail);
  EXPECT_EQ(counts_of(sum.sum()), expected);
}

INSTANTIATE_TEST_SUITE_P(FewAndManyDistinct, Tails, ::testing::Values(0U, 100U, 70'000U, 0xffff'ffffU));

TEST(TailSum, of_nothing_is_empty) {
  const Tail tail;
  TailSum sum;
  sum.add(tail);
  EXPECT_TRUE(sum.empty());
  EXPECT_TRUE(sum.sum().ticks.empty());
}

}  // namespace
}  // namespace blockyard::samples
