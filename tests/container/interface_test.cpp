// The interface of Godot's containers, function by function, and what elements may be: over-aligned, larger than a
// slab's share, with their own hashers.
#include <gtest/gtest.h>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "blockyard/hash_map.hpp"
#include "blockyard/list.hpp"
#include "blockyard/rb_map.hpp"
#include "blockyard/rb_set.hpp"

namespace blockyard {
namespace {

struct Backwards {
  bool operator()(int a, int b) const { return b < a; }
  bool operator()(const KeyValue<int, int>& a, const KeyValue<int, int>& b) const { return b.key < a.key; }
};

template <class L>
concept HasListInterface = std::copyable<L> && std::is_constructible_v<L, std::initializer_list<int>> &&
    requires(L list, const L constant, typename L::Element* element, int value, std::size_t index) {
  { list.push_back(value) } -> std::same_as<typename L::Element*>;
  { list.push_front(value) } -> std::same_as<typename L::Element*>;
  list.pop_back();
  list.pop_front();
  { list.insert_after(element, value) } -> std::same_as<typename L::Element*>;
  { list.insert_before(element, value) } -> std::same_as<typename L::Element*>;
  { list.find(value) } -> std::same_as<typename L::Element*>;
  { list.erase(element) } -> std::same_as<bool>;
  { list.erase(value) } -> std::same_as<bool>;
  list.clear();
  { constant.is_empty() } -> std::same_as<bool>;
  { constant.size() } -> std::convertible_to<std::size_t>;
  list.swap(element, element);
  { list.get(index) } -> std::same_as<int&>;
  list.move_to_back(element);
  list.move_to_front(element);
  list.move_before(element, element);
  list.reverse();
  list.sort();
  list.template sort_custom<Backwards>();
  { list.front() } -> std::same_as<typename L::Element*>;
  { list.back() } -> std::same_as<typename L::Element*>;
  { *list.begin() } -> std::same_as<int&>;
  { *constant.begin() } -> std::same_as<const int&>;
  list.end();
  { element->next() } -> std::same_as<typename L::Element*>;
  { element->prev() } -> std::same_as<typename L::Element*>;
  { element->get() } -> std::same_as<int&>;
  element->set(value);
  { **element } -> std::same_as<int&>;
  { element->operator->() } -> std::same_as<int*>;
};
static_assert(HasListInterface<List<int>> && HasListInterface<List<int, DirectBlocks>>);
static_assert(HasListInterface<List<int, StaticBlocks, Owned>>);

template <class L>
concept KnowsOwner = requires(L list, typename L::Element* element) {
  element->erase();
  element->transfer_to_back(list);
};
static_assert(KnowsOwner<List<int, StaticBlocks, Owned>> && !KnowsOwner<List<int>>);

template <class M>
concept HasHashMapInterface = std::copyable<M> &&
    std::is_constructible_v<M, std::initializer_list<std::pair<int, int>>> &&
    requires(M map, const M constant, int key, int value, std::size_t count) {
  { map.insert(key, value, true) } -> std::same_as<typename M::Iterator>;
  { map[key] } -> std::same_as<int&>;
  { map.get(key) } -> std::same_as<int&>;
  { constant.get(key) } -> std::same_as<const int&>;
  { map.getptr(key) } -> std::same_as<int*>;
  { constant.has(key) } -> std::same_as<bool>;
  { map.find(key) } -> std::same_as<typename M::Iterator>;
  { map.erase(key) } -> std::same_as<bool>;
  map.remove(map.begin());
  { map.replace_key(key, key) } -> std::same_as<bool>;
  map.reserve(count);
  { constant.get_capacity() } -> std::convertible_to<std::size_t>;
  { constant.size() } -> std::convertible_to<std::size_t>;
  { constant.is_empty() } -> std::same_as<bool>;
  map.clear();
  map.sort();
  map.template sort_custom<Backwards>();
  { map.last() } -> std::same_as<typename M::Iterator>;
  { map.begin()->key } -> std::convertible_to<int>;
  { map.begin()->value } -> std::convertible_to<int>;
  constant.end();
};
static_assert(HasHashMapInterface<HashMap<int, int>>);

template <class S>
concept HasOrderedInterface = std::copyable<S> &&
    requires(S set, const S constant, typename S::Element* element, int key) {
  { set.find(key) } -> std::same_as<typename S::Element*>;
  { set.find_closest(key) } -> std::same_as<typename S::Element*>;
  { set.lower_bound(key) } -> std::same_as<typename S::Element*>;
  { constant.has(key) } -> std::same_as<bool>;
  set.erase(element);
  { set.erase(key) } -> std::same_as<bool>;
  set.remove(set.begin());
  { set.front() } -> std::same_as<typename S::Element*>;
  { set.back() } -> std::same_as<typename S::Element*>;
  set.end();
  { element->next() } -> std::same_as<typename S::Element*>;
  { element->prev() } -> std::same_as<typename S::Element*>;
  { constant.size() } -> std::convertible_to<std::size_t>;
  set.clear();
  { constant.calculate_depth() } -> std::same_as<int>;
};
static_assert(HasOrderedInterface<RBMap<int, int>> && HasOrderedInterface<RBSet<int>>);
static_assert(std::is_constructible_v<RBMap<int, int>, std::initializer_list<std::pair<int, int>>>);
static_assert(std::is_constructible_v<RBSet<int>, std::initializer_list<int>>);
static_assert(requires(RBMap<int, int> map, RBSet<int> set, int key) {
  { map.insert(key, key) } -> std::same_as<RBMap<int, int>::Element*>;
  { map[key] } -> std::same_as<int&>;
  { set.insert(key) } -> std::same_as<RBSet<int>::Element*>;
});

template <class A>
constexpr bool empty_objects_are_small =
    sizeof(List<std::string, A>) <= 8 &&
    sizeof(HashMap<std::string, std::string, HasherDefault, ComparatorDefault<std::string>, A>) <= 40 &&
    sizeof(RBMap<std::string, std::string, container::LessDefault, A>) <= 24 &&
    sizeof(RBSet<std::string, container::LessDefault, A>) <= 24;
static_assert(empty_objects_are_small<StaticBlocks> && empty_objects_are_small<DirectBlocks>);

TEST(Interface, insertion_before_or_after_no_element_appends) {
  List<int> list{1, 2};
  list.insert_before(nullptr, 3);
  list.insert_after(nullptr, 4);
  EXPECT_EQ(list, (List<int>{1, 2, 3, 4}));
}

TEST(Interface, zero_and_null_are_erased_as_keys_and_values_where_they_can_be) {
  List<long> list{0, 1};
  EXPECT_TRUE(list.erase(0));
  EXPECT_FALSE(list.erase(nullptr));
  RBMap<long, int> map{{0, 1}, {2, 3}};
  EXPECT_TRUE(map.erase(0));
  map.erase(nullptr);
  EXPECT_EQ(list.size() + map.size(), 2u);
  List<int*> pointers{nullptr};
  EXPECT_TRUE(pointers.erase(nullptr));
  RBSet<int*> set{nullptr};
  EXPECT_TRUE(set.erase(nullptr));
  struct Holder {
    int number;
  };
  List<int Holder::*> members{nullptr, &Holder::number};
  EXPECT_TRUE(members.erase(nullptr));
  EXPECT_EQ(members.size(), 1u);
}

// --- what elements may be ---

struct alignas(128) Wide {
  explicit Wide(int from) : number(from) {}
  friend bool operator<(const Wide& a, const Wide& b) { return a.number < b.number; }
  friend bool operator==(const Wide& a, const Wide& b) { return a.number == b.number; }
  int number;
};
struct Large {
  explicit Large(int from) : number(from) {}
  int number;
  char rest[20'000] = {};
};
struct HashWide {
  static std::uint64_t hash(const Wide& wide) { return static_cast<std::uint64_t>(wide.number % 7); }
};

bool is_aligned(const Wide& wide) { return reinterpret_cast<std::uintptr_t>(&wide) % alignof(Wide) == 0; }

template <class A>
void hold_over_aligned_elements() {
  List<Wide, A> list;
  HashMap<Wide, Wide, HashWide, ComparatorDefault<Wide>, A> map;
  RBMap<Wide, Wide, container::LessDefault, A> ordered;
  RBSet<Wide, container::LessDefault, A> set;
  for (int i = 0; i < 300; ++i) {
    EXPECT_TRUE(is_aligned(list.push_back(Wide(i))->get()));
    const auto entry = map.insert(Wide(i), Wide(-i));
    EXPECT_TRUE(is_aligned(entry->key) && is_aligned(entry->value));
    const auto* const element = ordered.insert(Wide(i), Wide(-i));
    EXPECT_TRUE(is_aligned(element->key()) && is_aligned(element->value()));
    EXPECT_TRUE(is_aligned(set.insert(Wide(i))->get()));
  }
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(map.get(Wide(i)).number, -i);
    EXPECT_EQ(ordered.find(Wide(i))->value().number, -i);
  }
  EXPECT_TRUE(list.invariants_hold() && map.invariants_hold() && ordered.invariants_hold() && set.invariants_hold());
}

TEST(Elements, may_be_over_aligned) {
  hold_over_aligned_elements<StaticBlocks>();
  hold_over_aligned_elements<DirectBlocks>();
}

TEST(Elements, may_be_larger_than_a_page_of_memory) {
  List<Large> list;
  RBMap<int, Large> map;
  for (int i = 0; i < 50; ++i) {
    list.push_back(Large(i));
    map.insert(i, Large(i));
  }
  int next = 0;
  for (const Large& large : list) {
    EXPECT_EQ(large.number, next);
    EXPECT_EQ(map.find(next)->value().number, next);
    ++next;
  }
  list.clear();
  EXPECT_TRUE(map.invariants_hold());
}

static_assert(std::is_same_v<RBMap<int, Large>::value_type, KeyValue<int, Large>>);
static_assert(std::is_same_v<RBSet<int>::value_type, int>);

// As smart pointers of COM are, which give their inside away.
struct OwnAddressOperator {
  int number;
  void operator&() const = delete;  // NOLINT: what is tested
};

TEST(Elements, may_have_an_address_operator_of_their_own) {
  List<OwnAddressOperator> list;
  EXPECT_EQ(list.push_back({1})->operator->()->number, 1);
  EXPECT_EQ(list.begin()->number, 1);
  HashMap<int, OwnAddressOperator> map;
  EXPECT_EQ(map.insert(1, {2})->value.number, 2);
  EXPECT_EQ(map.get(1).number, 2);
  RBMap<int, OwnAddressOperator> ordered;
  EXPECT_EQ((*ordered.insert(1, {3}))->number, 3);
}

TEST(Elements, may_be_move_only_with_keys_that_are_copied) {
  const std::string name = "a name";
  HashMap<std::string, std::unique_ptr<int>> map;
  EXPECT_EQ(*map.insert(name, std::make_unique<int>(1))->value, 1);
  RBMap<std::string, std::unique_ptr<int>> ordered;
  EXPECT_EQ(*ordered.insert(name, std::make_unique<int>(2))->value(), 2);
  RBMap<std::unique_ptr<int>, int> counts;
  counts[std::make_unique<int>(3)] = 4;
  EXPECT_EQ(*counts.front()->key(), 3);
}

}  // namespace
}  // namespace blockyard
