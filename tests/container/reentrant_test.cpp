// Values whose constructors and destructors use the container that they are put into or erased from.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "blockyard/hash_map.hpp"
#include "blockyard/list.hpp"
#include "blockyard/rb_map.hpp"
#include "blockyard/rb_set.hpp"

namespace blockyard {
namespace {

/// Calls `event` once, in the next constructor or destructor of an Active.
std::function<void()> made;
std::function<void()> ended;
void call(std::function<void()>& event) {
  if (event) {
    std::exchange(event, nullptr)();
  }
}

struct Active {
  Active() { call(made); }
  explicit Active(int from) : number(from) { call(made); }
  Active(const Active& other) : number(other.number) { call(made); }
  Active(Active&& other) noexcept : number(other.number) { call(made); }
  Active& operator=(const Active&) = default;
  Active& operator=(Active&&) noexcept = default;
  ~Active() { call(ended); }
  friend bool operator<(const Active& a, const Active& b) { return a.number < b.number; }

  int number = 0;
};

/// The same without a destructor, so that it is copied as bytes though its constructor is the program's.
struct ActivePlain {
  ActivePlain() { call(made); }
  int number = 0;
};

template <class Map>
class ReentrantMap : public testing::Test {};
using ReentrantMaps =
    testing::Types<HashMap<int, Active>, HashMap<int, ActivePlain>,
                   HashMap<int, Active, HasherDefault, ComparatorDefault<int>, DirectBlocks>, RBMap<int, Active>,
                   RBMap<int, ActivePlain>, RBMap<int, Active, container::LessDefault, DirectBlocks>>;
TYPED_TEST_SUITE(ReentrantMap, ReentrantMaps);

template <class Map>
void expect_keys_below(Map& map, int end) {
  EXPECT_EQ(map.size(), static_cast<std::size_t>(end));
  EXPECT_TRUE(map.invariants_hold());
  for (int key = 0; key < end; ++key) {
    EXPECT_TRUE(map.has(key)) << key;
  }
}

TYPED_TEST(ReentrantMap, a_value_that_inserts_others_while_it_is_made_is_entered_beside_them) {
  for (int before = 0; before < 130; ++before) {
    for (const int others : {1, 3, 70}) {
      TypeParam map;
      for (int key = 0; key < before; ++key) {
        map[key];
      }
      made = [&] {
        for (int i = 1; i <= others; ++i) {
          map[before + i];
        }
      };
      map[before].number = 7;
      expect_keys_below(map, before + others + 1);
      EXPECT_EQ(map[before].number, 7);
    }
  }
}

TYPED_TEST(ReentrantMap, a_value_that_inserts_its_own_key_while_it_is_made_leaves_one_entry) {
  for (int before = 0; before < 80; ++before) {
    TypeParam map;
    for (int key = 0; key < before; ++key) {
      map[key];
    }
    made = [&] { map[before].number = 1; };
    EXPECT_EQ(map[before].number, 1);
    expect_keys_below(map, before + 1);
  }
}

TYPED_TEST(ReentrantMap, a_value_that_erases_others_while_it_is_made_finds_its_place) {
  for (int before = 1; before < 130; ++before) {
    TypeParam map;
    for (int key = 0; key <= before; ++key) {
      map[key];
    }
    map.erase(before - 1);
    made = [&] {
      for (int key = 0; key < before - 1; key += 2) {
        map.erase(key);
      }
    };
    map[before - 1];
    EXPECT_TRUE(map.invariants_hold());
    EXPECT_TRUE(map.has(before - 1) && map.has(before));
    EXPECT_EQ(map.size(), static_cast<std::size_t>(2 + (before - 1) / 2));
  }
}

TEST(Reentrant, an_inserted_copy_that_inserts_its_own_key_replaces_that_value) {
  HashMap<int, Active> map;
  RBMap<int, Active> ordered;
  const Active five(5);
  made = [&] { map[1].number = 1; };
  map.insert(1, five);
  made = [&] { ordered[1].number = 1; };
  ordered.insert(1, five);
  EXPECT_EQ(map.get(1).number, 5);
  EXPECT_EQ(ordered[1].number, 5);
  EXPECT_TRUE(map.size() == 1 && ordered.size() == 1 && map.invariants_hold() && ordered.invariants_hold());
}

TEST(Reentrant, a_value_that_is_put_into_a_swapped_map_while_it_is_made_lands_in_that_one) {
  HashMap<std::string, Active> map, other;
  RBMap<std::string, Active> ordered, other_ordered;
  for (int i = 0; i < 40; ++i) {
    other[std::to_string(i)];
    other_ordered[std::to_string(i)];
  }
  made = [&] { map.swap(other); };
  map["new"];
  made = [&] { ordered.swap(other_ordered); };
  ordered["new"];
  EXPECT_TRUE(map.size() == 41 && other.is_empty() && map.invariants_hold());
  EXPECT_TRUE(ordered.size() == 41 && other_ordered.is_empty() && ordered.invariants_hold());
}

TEST(Reentrant, a_set_takes_values_that_insert_while_they_are_copied) {
  for (int before = 0; before < 130; ++before) {
    RBSet<Active> set;
    for (int i = 0; i < before; ++i) {
      set.insert(Active(i));
    }
    const Active added(before);
    made = [&] {
      for (int i = before + 5; i >= before; --i) {
        set.insert(Active(i));
      }
    };
    set.insert(added);
    EXPECT_EQ(set.size(), static_cast<std::size_t>(before + 6));
    EXPECT_TRUE(set.invariants_hold());
  }
}

TEST(Reentrant, a_list_takes_values_that_change_it_while_they_are_made) {
  List<Active> list;
  made = [&] { list.push_front(Active(2)); };
  list.push_front(Active(1));
  made = [&] { list.push_back(Active(3)); };
  list.emplace_back(4);
  made = [&] { list.pop_front(); };
  list.emplace_front(0);
  EXPECT_TRUE(list.invariants_hold());
  EXPECT_EQ(list.size(), 4u);
  EXPECT_EQ(list.front()->get().number, 0);
  EXPECT_EQ(list.back()->get().number, 4);
}

TYPED_TEST(ReentrantMap, a_value_that_erases_others_when_it_is_erased_leaves_the_rest) {
  if constexpr (!std::is_trivially_destructible_v<std::remove_cvref_t<decltype(std::declval<TypeParam&>()[0])>>) {
    for (int size = 2; size < 130; ++size) {
      TypeParam map;
      for (int key = 0; key < size; ++key) {
        map[key];
      }
      ended = [&] { map.erase(size - 1); };
      map.erase(0);
      EXPECT_EQ(map.size(), static_cast<std::size_t>(size - 2));
      EXPECT_TRUE(map.invariants_hold());
    }
  }
}

TYPED_TEST(ReentrantMap, a_value_that_looks_for_others_when_the_map_ends_finds_none) {
  if constexpr (!std::is_trivially_destructible_v<std::remove_cvref_t<decltype(std::declval<TypeParam&>()[0])>>) {
    bool found = true;
    {
      TypeParam map;
      for (int key = 0; key < 30; ++key) {
        map[key];
      }
      ended = [&] { found = map.has(20) || map.erase(21) || !map.is_empty(); };
    }
    EXPECT_FALSE(found);
  }
}

}  // namespace
}  // namespace blockyard
