// The percentiles of lateness, against a sort.
#include "replay/results/lateness.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace blockyard::replay {
namespace {

TEST(Lateness, without_events_is_zero) {
  const LatenessHistogram lateness;
  EXPECT_EQ(lateness.percentile(0.5), 0u);
  EXPECT_EQ(lateness.max(), 0u);
}

TEST(Lateness, small_values_are_exact) {
  LatenessHistogram lateness;
  for (std::uint64_t ns = 1; ns <= 100; ++ns) lateness.add(ns);
  EXPECT_EQ(lateness.percentile(0.5), 50u);
  EXPECT_EQ(lateness.percentile(0.99), 99u);
  EXPECT_EQ(lateness.percentile(1), 100u);
}

TEST(Lateness, percentiles_are_within_one_percent_of_a_sort) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> spread(8, 4);
  LatenessHistogram lateness;
  std::vector<std::uint64_t> sorted;
  for (int i = 0; i < 200'000; ++i) {
    sorted.push_back(static_cast<std::uint64_t>(spread(random)));
    lateness.add(sorted.back());
  }
  std::sort(sorted.begin(), sorted.end());
  for (const double fraction : {0.01, 0.5, 0.9, 0.99, 0.999, 0.9999}) {
    const auto rank = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(sorted.size()))) - 1;
    const double exact = static_cast<double>(sorted[rank]);
    EXPECT_GE(static_cast<double>(lateness.percentile(fraction)), exact) << fraction;
    EXPECT_LE(static_cast<double>(lateness.percentile(fraction)), exact * 1.01 + 1) << fraction;
  }
  EXPECT_EQ(lateness.max(), sorted.back());
}

TEST(Lateness, the_largest_numbers_have_their_bucket) {
  LatenessHistogram lateness;
  lateness.add(~std::uint64_t{0});
  EXPECT_EQ(lateness.percentile(0.5), ~std::uint64_t{0});
}

}  // namespace
}  // namespace blockyard::replay
