// What the containers have by the standard's names, beside Godot's.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "blockyard/block_allocator.hpp"
#include "blockyard/hash_map.hpp"
#include "blockyard/lifetime.hpp"
#include "blockyard/list.hpp"
#include "blockyard/rb_map.hpp"
#include "blockyard/rb_set.hpp"
#include "blockyard/rewindable.hpp"

namespace blockyard {
namespace {

/// Neither assignable nor default-constructible, and not movable.
struct Fixed {
  explicit Fixed(int a, int b = 0) : sum(a + b) {}
  Fixed(const Fixed&) = delete;
  Fixed& operator=(const Fixed&) = delete;
  const int sum;
};

using DirectMap = HashMap<int, std::string, HasherDefault, ComparatorDefault<int>, DirectBlocks>;

template <class Map>
class AnyMap : public testing::Test {};
using StandardMaps = testing::Types<HashMap<int, std::string>, DirectMap, RBMap<int, std::string>,
                                    HashMap<int, std::string, HasherDefault, ComparatorDefault<int>, TempBlocks>,
                                    RBMap<int, std::string, container::LessDefault, TempBlocks>>;
TYPED_TEST_SUITE(AnyMap, StandardMaps);

TYPED_TEST(AnyMap, is_made_of_a_range_and_compared) {
  const std::map<int, std::string> from{{3, "three"}, {1, "one"}, {2, "two"}};
  const TypeParam map(from.begin(), from.end());
  EXPECT_EQ(map.size(), 3u);
  EXPECT_EQ(map.at(2), "two");
  EXPECT_EQ(map[3], "three");
  TypeParam copy(map.begin(), map.end());
  EXPECT_EQ(copy, map);
  copy.insert(2, "zwei");
  EXPECT_NE(copy, map);
  copy.erase(2);
  EXPECT_NE(copy, map);
  EXPECT_TRUE(map.contains(1) && !copy.contains(2) && !map.empty() && TypeParam().empty());
  EXPECT_EQ(map.cbegin() == map.cend(), false);
  EXPECT_THROW(static_cast<void>(map.at(4)), std::out_of_range);
  EXPECT_THROW(static_cast<void>(map[4]), std::out_of_range);
}

TYPED_TEST(AnyMap, try_emplace_leaves_what_is_there_and_what_it_was_given) {
  TypeParam map;
  std::string value = "a value too long for the string itself";
  const auto [first, is_new] = map.try_emplace(1, value);
  EXPECT_TRUE(is_new);
  const auto [second, again] = map.try_emplace(1, std::move(value));
  EXPECT_FALSE(again);
  EXPECT_EQ(second, first);
  EXPECT_FALSE(value.empty()) << "moved from for nothing";  // NOLINT: it must not be
  EXPECT_TRUE(map.emplace(2, 3u, 'x').second);
  EXPECT_EQ(map.at(2), "xxx");
}

TYPED_TEST(AnyMap, erases_by_iterator_and_by_condition) {
  TypeParam map;
  for (int i = 0; i < 500; ++i) {
    map.insert(i, std::to_string(i));
  }
  EXPECT_EQ(erase_if(map, [](const auto& entry) { return entry.key % 3 != 0; }), 333u);
  EXPECT_TRUE(map.size() == 167 && map.invariants_hold());
  auto next = map.erase(map.begin());
  EXPECT_EQ(next->key, 3);
  next = map.erase(++next);
  EXPECT_EQ(next->key, 9);
  while (map.begin() != map.end()) {
    next = map.erase(map.begin());
  }
  EXPECT_EQ(next, map.end());
}

TYPED_TEST(AnyMap, says_its_memory_and_gives_what_it_does_not_need_back) {
  TypeParam map;
  EXPECT_EQ(map.memory_bytes(), 0u);
  for (int i = 0; i < 10'000; ++i) {
    map.insert(i * 77, "");
  }
  const std::size_t full = map.memory_bytes();
  EXPECT_GE(full, 10'000 * sizeof(std::string));
  for (const int left : {1000, 12, 9, 3, 0}) {
    erase_if(map, [left](const auto& entry) { return entry.key >= left * 77; });
    map.shrink_to_fit();
    EXPECT_TRUE(map.size() == static_cast<std::size_t>(left) && map.invariants_hold());
    EXPECT_LE(map.memory_bytes(), full / 8 + 1024);
    for (int i = 0; i < left; ++i) {
      ASSERT_TRUE(map.has(i * 77));
    }
  }
  EXPECT_EQ(map.memory_bytes(), 0u);
  map.insert(1, "");
  EXPECT_TRUE(map.invariants_hold());
}

TEST(Standard, maps_take_values_that_can_neither_be_assigned_nor_moved) {
  HashMap<int, Fixed> map;
  RBMap<int, Fixed> ordered;
  HashMap<int, std::unique_ptr<int>> owners;
  EXPECT_EQ(map.try_emplace(1, 2, 3).first->value.sum, 5);
  EXPECT_EQ(ordered.try_emplace(1, 2, 3).first->value().sum, 5);
  owners.emplace(1, std::make_unique<int>(7));
  EXPECT_EQ(*owners.at(1), 7);
}

/// Counts the strings that are made.
struct Counted {
  static inline int made = 0;
  Counted(const char* from) : text(from) { ++made; }  // NOLINT: converts
  friend bool operator==(const Counted& a, std::string_view b) { return a.text == b; }
  friend bool operator==(const Counted& a, const Counted& b) { return a.text == b.text; }
  std::string text;
};
struct Transparent {
  using is_transparent = void;
  static std::size_t hash(std::string_view text) { return std::hash<std::string_view>()(text); }
  static std::size_t hash(const Counted& key) { return hash(std::string_view(key.text)); }
  static bool compare(const Counted& a, std::string_view b) { return a == b; }
  static bool compare(const Counted& a, const Counted& b) { return a == b; }
};

TEST(Standard, look_ups_take_what_stands_for_a_string) {
  const std::string_view part = std::string_view("torches").substr(0, 5);
  HashMap<std::string, int> map{{"torch", 5}, {"rope", 1}};
  const HashMap<std::string, int>& constant = map;
  EXPECT_TRUE(map.has(part) && map.contains("rope") && !map.has("torches"));
  EXPECT_EQ(*map.getptr(part) + *constant.getptr("rope") + map.get(part) + constant.at("rope"), 12);
  EXPECT_EQ(map.find(part)->value, 5);
  EXPECT_EQ(constant.find("none"), constant.end());
  EXPECT_TRUE(map.erase(part) && !map.erase("torch"));
  RBMap<std::string, int> ordered{{"torch", 5}};
  RBSet<std::string> set{"torch"};
  EXPECT_TRUE(ordered.has(part) && set.contains(part) && ordered.find(part)->value() == 5 && !set.find("torches"));
  HashMap<Counted, int, Transparent, Transparent> counted;
  counted.insert("one", 1);
  Counted::made = 0;
  EXPECT_TRUE(counted.has(std::string_view("one")) && !counted.has(std::string_view("two")));
  EXPECT_EQ(Counted::made, 0);
}

// By number, without a name.
struct Officer {
  explicit Officer(int of) : number(of) { ++made; }
  static inline int made = 0;
  int number;
  std::string name = "a name that takes memory of its own";
};
struct ByNumber {
  using is_transparent = void;
  static int of(const Officer& officer) { return officer.number; }
  static int of(int number) { return number; }
  bool operator()(const auto& a, const auto& b) const { return of(a) < of(b); }
};

TEST(Standard, ordered_look_ups_take_what_stands_for_a_key) {
  const std::string_view part = std::string_view("torches").substr(0, 5);
  RBMap<std::string, int> map{{"axe", 1}, {"rope", 2}, {"torch", 3}};
  const RBMap<std::string, int>& constant = map;
  EXPECT_EQ(map.at(part) + constant.at("rope"), 5);
  EXPECT_THROW(static_cast<void>(constant.at("none")), std::out_of_range);
  EXPECT_EQ(constant.lower_bound("b")->key() + map.upper_bound("rope")->key() + map.find_closest("s")->key(),
            "ropetorchrope");
  EXPECT_EQ(map.upper_bound(part), nullptr);
  EXPECT_TRUE(map.erase(part) && !map.erase("torch") && map.size() == 2);
  map.erase(nullptr);

  RBSet<Officer, ByNumber> set;
  RBMap<Officer, int, ByNumber> ranks;
  for (int number = 0; number < 1000; number += 2) {
    set.emplace(number);
    ranks.emplace(number, number);
  }
  Officer::made = 0;
  for (int number = 1; number < 997; ++number) {
    const bool there = number % 2 == 0;
    ASSERT_TRUE(set.has(number) == there && (ranks.find(number) != nullptr) == there);
    ASSERT_EQ(set.lower_bound(number)->get().number, there ? number : number + 1);
    ASSERT_EQ(ranks.upper_bound(number)->value(), there ? number + 2 : number + 1);
    ASSERT_EQ(ranks.find_closest(number)->value(), there ? number : number - 1);
  }
  EXPECT_EQ(ranks.at(8), 8);
  EXPECT_TRUE(set.erase(8) && !set.erase(8) && ranks.erase(998) && set.invariants_hold());
  EXPECT_EQ(Officer::made, 0);
}

struct ByTable {
  explicit ByTable(const std::vector<int>& of) : ranks(&of) {}
  bool operator()(int a, int b) const {
    return (*ranks)[static_cast<std::size_t>(a)] < (*ranks)[static_cast<std::size_t>(b)];
  }
  const std::vector<int>* ranks;
};

TEST(Standard, ordered_containers_keep_a_comparator_with_state) {
  std::vector<int> ranks(300);
  std::vector<int> other_ranks(300);
  for (int i = 0; i < 300; ++i) {
    ranks[static_cast<std::size_t>(i)] = (i * 37) % 300 * 10 + i % 10;
    other_ranks[static_cast<std::size_t>(i)] = -i;
  }
  RBSet<int, ByTable> set{ByTable(ranks)};
  RBSet<int, ByTable> other{ByTable(other_ranks)};
  for (int i = 0; i < 300; ++i) {
    set.insert(i);
    other.insert(i);
  }
  EXPECT_TRUE(set.invariants_hold() && other.invariants_hold());
  set.swap(other);
  EXPECT_TRUE(set.invariants_hold() && other.invariants_hold());
  EXPECT_EQ(set.front()->get(), 299);
  RBSet<int, ByTable> moved(std::move(set));
  RBSet<int, ByTable> copied(moved);
  other = copied;
  EXPECT_TRUE(moved.invariants_hold() && copied.invariants_hold() && other.invariants_hold());
  EXPECT_EQ(other.front()->get(), 299);
  RBMap<std::string, int, std::function<bool(const std::string&, const std::string&)>> backwards(
      [](const std::string& a, const std::string& b) { return b < a; });
  backwards["a"] = 1;
  backwards["b"] = 2;
  EXPECT_EQ(backwards.front()->key(), "b");
}

TEST(Standard, upper_bound_is_what_std_set_finds) {
  RBSet<int> set;
  std::set<int> expected;
  EXPECT_EQ(set.upper_bound(1), nullptr);
  for (int i = 0; i < 400; ++i) {
    set.insert(i * 31 % 1000);
    expected.insert(i * 31 % 1000);
  }
  for (int key = -1; key < 1001; ++key) {
    const auto* const found = set.upper_bound(key);
    const auto wanted = expected.upper_bound(key);
    ASSERT_EQ(found == nullptr, wanted == expected.end()) << key;
    if (found != nullptr) {
      ASSERT_EQ(found->get(), *wanted);
    }
  }
}

TEST(Standard, a_set_is_made_of_a_range_and_takes_values_in_place) {
  const std::vector<std::string> from{"b", "a", "b"};
  RBSet<std::string> set(from.begin(), from.end());
  EXPECT_EQ(set, (RBSet<std::string>{"a", "b"}));
  EXPECT_TRUE(set.emplace(3u, 'x').second);
  EXPECT_FALSE(set.emplace("a").second);
  EXPECT_EQ(erase_if(set, [](const std::string& value) { return value != "a"; }), 2u);
}

template <class L>
class AnyList : public testing::Test {};
using StandardLists = testing::Types<List<int>, List<int, StaticBlocks, Owned>, List<int, MallocBlocks>>;
TYPED_TEST_SUITE(AnyList, StandardLists);

template <class L>
std::vector<int> standard_values_of(const L& list) {
  EXPECT_TRUE(list.invariants_hold());
  return {list.begin(), list.end()};
}

TYPED_TEST(AnyList, splices_whole_lists_and_single_elements) {
  TypeParam a{1, 2, 3};
  TypeParam b{10, 20};
  auto* const two = a.front()->next();
  auto* const ten = b.front();
  a.splice(two, b);
  EXPECT_EQ(standard_values_of(a), (std::vector<int>{1, 10, 20, 2, 3}));
  EXPECT_TRUE(standard_values_of(b).empty());
  EXPECT_EQ(a.front()->next(), ten) << "an address changed";
  b.splice(nullptr, a, two);
  b.splice(two, a, ten);
  a.splice(nullptr, b);
  a.splice(a.front(), b);
  EXPECT_EQ(standard_values_of(a), (std::vector<int>{1, 20, 3, 10, 2}));
  a.splice(a.front(), a, a.back());
  EXPECT_EQ(standard_values_of(a), (std::vector<int>{2, 1, 20, 3, 10}));
  b.splice(nullptr, a);
  EXPECT_TRUE(a.empty() && b.size() == 5);
}

TYPED_TEST(AnyList, erases_by_iterator_and_by_condition_and_makes_elements_anywhere) {
  const std::vector<int> from{1, 2, 3, 4, 5, 6};
  TypeParam list(from.begin(), from.end());
  EXPECT_EQ(erase_if(list, [](int value) { return value % 2 == 0; }), 3u);
  EXPECT_EQ(*list.erase(list.begin()), 3);
  EXPECT_EQ(list.erase(--list.end()), list.end());
  list.emplace_front(1);
  list.emplace(list.back(), 2);
  EXPECT_EQ(standard_values_of(list), (std::vector<int>{1, 2, 3}));
  EXPECT_TRUE(list.contains(2) && !list.contains(4) && list.at(2) == 3);
  EXPECT_GE(list.memory_bytes(), 3 * 3 * sizeof(int));
}

TEST(Standard, lists_over_different_allocators_refuse_to_splice) {
  List<int, DirectBlocks> a{1};
  List<int, DirectBlocks> b{2};
  EXPECT_THROW(a.splice(nullptr, b), std::invalid_argument);
  EXPECT_THROW(a.splice(nullptr, b, b.front()), std::invalid_argument);
  EXPECT_TRUE(a.size() == 1 && b.size() == 1 && a.invariants_hold() && b.invariants_hold());
}

TEST(Standard, containers_of_one_frame_end_with_it) {
  by_thread_end_frame();
  List<int, TempBlocks> list;
  HashMap<int, int, HasherDefault, ComparatorDefault<int>, TempBlocks> map;
  RBMap<int, int, container::LessDefault, TempBlocks> ordered;
  for (int frame = 0; frame < 3; ++frame) {
    for (int i = 0; i < 1000; ++i) {
      list.push_back(i);
      map[i] = i;
      ordered[i] = i;
    }
    EXPECT_TRUE(list.invariants_hold() && map.invariants_hold() && ordered.invariants_hold());
    by_thread_end_frame();
    static_cast<void>(make_span<char>(50'000, Lifetime::temp));
    list.clear();
    map.clear();
    ordered.clear();
  }
}

TEST(Standard, a_typed_pool_of_one_owner_makes_and_destroys) {
  TypedBlockAllocator<std::string> pool;
  std::string* const text = pool.create(40u, 'x');
  EXPECT_EQ(text->size(), 40u);
  EXPECT_EQ(pool.blocks().statistics().live_blocks, 1u);
  pool.destroy(text);
  pool.destroy(nullptr);
  EXPECT_EQ(pool.blocks().statistics().live_blocks, 0u);
  struct Throws {
    Throws() { throw std::runtime_error("no"); }
  };
  TypedBlockAllocator<Throws> none;
  EXPECT_THROW(static_cast<void>(none.create()), std::runtime_error);
  EXPECT_EQ(none.blocks().statistics().live_blocks, 0u);
}

TEST(Standard, a_rewindable_arena_makes_objects_and_spans) {
  rewindable arena;
  struct Point {
    int x;
    int y;
  };
  Point* const point = arena.make<Point>(Point{1, 2});
  const std::span<double> numbers = arena.make_span<double>(100);
  ASSERT_TRUE(point != nullptr && numbers.size() == 100);
  EXPECT_EQ(point->y, 2);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(numbers.data()) % alignof(double), 0u);
  EXPECT_EQ(arena.make_span<double>(SIZE_MAX / 4).data(), nullptr);
}

// Godot's containers do the same.
TEST(Godot, what_does_nothing_there_does_nothing_here) {
  HashMap<int, int> map{{1, 1}, {2, 2}};
  EXPECT_TRUE(map.replace_key(1, 1));
  EXPECT_FALSE(map.replace_key(1, 2));
  auto at = map.end();
  ++at;
  EXPECT_EQ(at, map.end());
  List<int> list{1};
  List<int>::Element* const none = nullptr;
  list.swap(list.front(), none);
  EXPECT_EQ(list.size(), 1u);
  List<int, StaticBlocks, Owned> a{1};
  List<int, StaticBlocks, Owned> b{2};
  EXPECT_FALSE(a.erase(b.front()));
  EXPECT_TRUE(a.size() == 1 && b.size() == 1);
  EXPECT_GE((HashMap<int, int>(100).get_capacity()), 100u);
}

}  // namespace
}  // namespace blockyard
