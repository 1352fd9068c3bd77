// The hash map behind every resolver agrees with std::unordered_map under churn.
#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

#include "journal/flat_map.hpp"

namespace blockyard::journal {
namespace {

TEST(FlatMap, agrees_with_the_standard_map_through_a_million_random_operations) {
  FlatMap<std::uint64_t> map(16);
  std::unordered_map<std::uint64_t, std::uint64_t> model;
  std::mt19937_64 random(5);
  for (std::uint64_t i = 0; i < 1'000'000; ++i) {
    const std::uint64_t key = 1 + random() % 4096 * 16;
    if (random() % 2 == 0) {
      ASSERT_EQ(map.insert(key, i), model.emplace(key, i).second);
    } else {
      std::uint64_t value = 0;
      const auto found = model.find(key);
      ASSERT_EQ(map.take(key, value), found != model.end());
      if (found == model.end()) continue;
      ASSERT_EQ(value, found->second);
      model.erase(found);
    }
    ASSERT_EQ(map.size(), model.size());
  }
  std::size_t visited = 0;
  map.for_each([&](std::uint64_t key, std::uint64_t value) {
    ++visited;
    EXPECT_EQ(model.at(key), value);
  });
  EXPECT_EQ(visited, model.size());
}

}  // namespace
}  // namespace blockyard::journal
