// RBMap and RBSet beyond the differential test: sizes, depth, exceptions.
#include <gtest/gtest.h>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "blockyard/rb_map.hpp"
#include "blockyard/rb_set.hpp"

namespace blockyard {
namespace {

TEST(RBMap, the_tree_is_shallow) {
  RBMap<int, int> map;
  EXPECT_EQ(map.calculate_depth(), 0);
  for (int i = 0; i < 100000; ++i) {
    map.insert(i * 7919 % 100003, i);
  }
  EXPECT_LE(map.calculate_depth(), 3);
}

template <class K>
class NumberKeys : public testing::Test {};
using EveryNumber = testing::Types<bool, char, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                                   std::uint32_t, std::int64_t, std::uint64_t, float, double, long double>;
TYPED_TEST_SUITE(NumberKeys, EveryNumber);

// The search in a node depends on the type, sign and size of the numbers.
TYPED_TEST(NumberKeys, are_found_and_ordered_as_by_std_map) {
  using Limits = std::numeric_limits<TypeParam>;
  std::vector<TypeParam> keys{Limits::lowest(), Limits::max(), TypeParam(0), Limits::infinity(), Limits::max()};
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    if constexpr (std::is_floating_point_v<TypeParam>) {
      keys.push_back(static_cast<TypeParam>(static_cast<std::int64_t>(random())) / 1000);
    } else {
      keys.push_back(static_cast<TypeParam>(random()));
    }
  }
  RBMap<TypeParam, std::size_t> map;
  std::map<TypeParam, std::size_t> expected;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i % 3 != 0) {
      map.insert(keys[i], i);
      expected[keys[i]] = i;
    }
  }
  for (const TypeParam key : keys) {
    const auto known = expected.find(key);
    ASSERT_EQ(map.has(key), known != expected.end());
    const auto bound = expected.lower_bound(key);
    const auto* const found = map.lower_bound(key);
    ASSERT_EQ(found == nullptr, bound == expected.end());
    ASSERT_TRUE(found == nullptr || (found->key() == bound->first && found->value() == bound->second));
  }
  EXPECT_TRUE(map.invariants_hold());
  EXPECT_TRUE(std::equal(map.begin(), map.end(), expected.begin(), expected.end(),
                         [](const auto& a, const auto& b) { return a.key == b.first && a.value == b.second; }));
}

// Nodes are padded with the greatest number.
TYPED_TEST(NumberKeys, of_which_the_greatest_is_found_only_when_it_is_there) {
  using Limits = std::numeric_limits<TypeParam>;
  const TypeParam greatest = Limits::has_infinity ? Limits::infinity() : Limits::max();
  RBMap<TypeParam, int> map;
  for (int size = 1; size < 300; ++size) {
    map.insert(static_cast<TypeParam>(size % 100 * (std::is_same_v<TypeParam, bool> ? 0 : 1)), size);
    ASSERT_FALSE(map.has(greatest));
    ASSERT_EQ(map.lower_bound(greatest), nullptr);
    auto* const element = map.insert(greatest, -1);
    ASSERT_EQ(map.find(greatest), element);
    ASSERT_EQ(map.back(), element);
    ASSERT_TRUE(map.invariants_hold());
    ASSERT_TRUE(map.erase(greatest));
    if (size > 200) {
      ASSERT_TRUE(map.erase(map.front()->key()));
    }
    ASSERT_TRUE(map.invariants_hold());
  }
}

TEST(RBMapOfStrings, a_key_that_lacks_what_all_share_comes_before_or_after_them) {
  RBMap<std::string, int> map;
  for (int i = 0; i < 5000; ++i) {
    map.insert("res://textures/" + std::to_string(i), i);
  }
  for (const char* const before :
       {"", "q", "res", "res://textures", "res://texturez", "s", "zzzzzzzzzzzzzzzzzzzzzzz"}) {
    const bool is_before = std::string(before) < map.front()->key();
    ASSERT_FALSE(map.has(before));
    ASSERT_EQ(map.lower_bound(before), is_before ? map.front() : nullptr);
    ASSERT_EQ(map.find_closest(before), is_before ? nullptr : map.back());
    auto* const element = map.insert(before, -1);
    ASSERT_EQ(element, is_before ? map.front() : map.back());
    ASSERT_TRUE(map.invariants_hold());
    ASSERT_EQ(map.find("res://textures/4711")->value(), 4711);
    map.erase(element);
    ASSERT_TRUE(map.invariants_hold());
  }
}

// The root and the leaves at the edges come to skip what all keys share; the branches between them do not. Then the
// tree loses its root.
TEST(RBMapOfStrings, a_tree_that_shrinks_goes_on_with_what_all_keys_share) {
  RBSet<std::string> set{"a", "z"};
  const auto name = [](int i) { return "res://models/" + std::to_string(i); };
  for (int i = 0; i < 3000; ++i) {
    set.insert(name(i));
  }
  set.erase("a");
  set.erase("z");
  for (int i = 0; i < 3000; ++i) {
    set.insert(name(5'000'000 + i));
  }
  for (const char* const end : {"!", "~"}) {
    set.insert(std::string("res://models/") + end);
  }
  ASSERT_EQ(set.calculate_depth(), 3);
  for (auto* element = set.front()->next(); element != set.back();) {
    auto* const next = element->next();
    set.erase(element);
    element = next;
    ASSERT_TRUE(set.invariants_hold());
  }
  const auto* const first = set.insert("q");
  EXPECT_EQ(first, set.front());
  EXPECT_TRUE(set.invariants_hold());
}

TEST(RBMapOfStrings, keys_of_a_hundred_thousand_equal_bytes_are_told_apart) {
  const std::string beginning(100'000, 'x');
  RBSet<std::string> set;
  for (int i = 0; i < 200; ++i) {
    set.insert(beginning + std::to_string(i));
  }
  EXPECT_EQ(set.size(), 200u);
  EXPECT_TRUE(set.has(beginning + "77"));
  EXPECT_FALSE(set.has(beginning));
  EXPECT_TRUE(set.invariants_hold());
}

TEST(RBMap, compares_keys_once_where_their_type_has_a_comparison_of_three_results) {
  static int comparisons;
  struct Key {
    std::string text;
    std::weak_ordering operator<=>(const Key& other) const {
      ++comparisons;
      return text <=> other.text;
    }
    bool operator==(const Key&) const = default;
  };
  RBSet<Key> set;
  for (int i = 0; i < 1000; ++i) {
    set.insert({std::to_string(i)});
  }
  comparisons = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(set.has({std::to_string(i)}));
  }
  EXPECT_LE(comparisons, 10 * 1000);  // 2^10 > 1000
}

TEST(RBMap, a_comparator_that_throws_changes_nothing) {
  static bool throws;
  struct Order {
    bool operator()(int a, int b) const {
      if (throws) {
        throw std::runtime_error("no order");
      }
      return a < b;
    }
  };
  throws = false;
  RBMap<int, int, Order> map;
  for (int i = 0; i < 1000; ++i) {
    map.insert(i * 2, i);
  }
  throws = true;
  EXPECT_THROW(map.insert(7, 7), std::runtime_error);
  EXPECT_THROW(map.erase(8), std::runtime_error);
  throws = false;
  EXPECT_EQ(map.size(), 1000u);
  EXPECT_TRUE(map.invariants_hold());
}

TEST(RBMap, a_key_that_is_missing_in_a_constant_map_throws) {
  const RBMap<int, int> map;
  EXPECT_THROW(static_cast<void>(map[1]), std::out_of_range);
}

TEST(RBMap, holds_values_that_can_only_be_moved) {
  RBMap<int, std::unique_ptr<int>> map;
  map.insert(1, std::make_unique<int>(4));
  auto moved = std::move(map);
  EXPECT_EQ(*moved.find(1)->value(), 4);
  EXPECT_TRUE(map.is_empty());
}

}  // namespace
}  // namespace blockyard
