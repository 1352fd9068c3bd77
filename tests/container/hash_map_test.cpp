// HashMap beyond what the differential test sees: sizes, access, capacity, exceptions.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "blockyard/hash_map.hpp"

namespace blockyard {
namespace {

static_assert(sizeof(HashMap<std::string, std::string>) <= 40);
static_assert(sizeof(HashMap<int, int, HasherDefault, ComparatorDefault<int>, DirectBlocks>) <= 40);

template <class Map>
std::vector<int> keys_of(const Map& map) {
  std::vector<int> keys;
  for (const auto& entry : map) {
    keys.push_back(entry.key);
  }
  return keys;
}

TEST(HashMap, keeps_the_order_of_insertion_and_replacing_a_value_keeps_the_place) {
  HashMap<int, int> map{{3, 1}, {1, 1}, {2, 1}};
  map.insert(1, 5);
  map.insert(9, 1, true);
  EXPECT_EQ(keys_of(map), (std::vector<int>{9, 3, 1, 2}));
  EXPECT_EQ(map.get(1), 5);
  EXPECT_EQ(map.last()->key, 2);
}

TEST(HashMap, an_entry_keeps_its_address_while_the_map_grows) {
  HashMap<int, int> map;
  const int* const first = &map.insert(0, 7)->value;
  for (int i = 1; i < 100000; ++i) {
    map.insert(i, i);
  }
  EXPECT_EQ(map.getptr(0), first);
  EXPECT_EQ(*first, 7);
}

TEST(HashMap, get_of_a_missing_key_throws_and_getptr_is_null) {
  const HashMap<int, int> map;
  EXPECT_THROW(static_cast<void>(map.get(1)), std::out_of_range);
  EXPECT_EQ(map.getptr(1), nullptr);
  EXPECT_FALSE(map.find(1));
}

TEST(HashMap, reserve_makes_room_so_that_no_insert_grows_it) {
  HashMap<int, int> map;
  map.reserve(1000);
  const std::size_t capacity = map.get_capacity();
  EXPECT_GE(capacity, 1000u);
  for (int i = 0; i < 1000; ++i) {
    map.insert(i, i);
  }
  EXPECT_EQ(map.get_capacity(), capacity);
}

TEST(HashMap, an_absurd_reserve_fails_and_changes_nothing) {
  HashMap<int, int> map{{1, 1}};
  EXPECT_THROW(map.reserve(std::size_t{1} << 40), std::bad_alloc);
  EXPECT_EQ(map.get(1), 1);
}

TEST(HashMap, holds_keys_and_values_that_can_only_be_moved) {
  struct Hash {
    static std::uint64_t hash(const std::unique_ptr<int>& key) { return static_cast<std::uint64_t>(*key); }
  };
  struct Equal {
    static bool compare(const std::unique_ptr<int>& a, const std::unique_ptr<int>& b) { return *a == *b; }
  };
  HashMap<std::unique_ptr<int>, std::unique_ptr<int>, Hash, Equal> map;
  map.insert(std::make_unique<int>(1), std::make_unique<int>(2));
  EXPECT_EQ(*map.get(std::make_unique<int>(1)), 2);
  auto moved = std::move(map);
  EXPECT_EQ(moved.size(), 1u);
}

TEST(HashMap, works_when_every_hash_is_the_same) {
  struct Constant {
    static std::uint32_t hash(int) { return 42; }
  };
  HashMap<int, int, Constant> map;
  for (int i = 0; i < 500; ++i) {
    map.insert(i, i);
  }
  for (int i = 0; i < 500; i += 2) {
    EXPECT_TRUE(map.erase(i));
  }
  EXPECT_TRUE(map.invariants_hold());
  EXPECT_EQ(map.size(), 250u);
}

TEST(HashMap, a_value_whose_constructor_throws_is_not_entered) {
  struct Fussy {
    explicit Fussy(bool throws = true) {
      if (throws) {
        throw std::runtime_error("no default");
      }
    }
  };
  HashMap<int, Fussy> map;
  EXPECT_THROW(static_cast<void>(map[1]), std::runtime_error);
  EXPECT_TRUE(map.is_empty());
  EXPECT_TRUE(map.invariants_hold());
}

TEST(HashMap, a_removed_entry_may_be_the_current_one_of_a_loop) {
  HashMap<int, int> map;
  for (int i = 0; i < 100; ++i) {
    map.insert(i, i);
  }
  for (auto it = map.begin(); it;) {
    const auto current = it++;
    if (current->key % 2 == 0) {
      map.remove(current);
    }
  }
  EXPECT_EQ(map.size(), 50u);
  EXPECT_TRUE(map.invariants_hold());
}

}  // namespace
}  // namespace blockyard
