// Each allocation in turn fails: the operation throws, leaves the container as it was, and leaks nothing.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

#include "blockyard/hash_map.hpp"
#include "blockyard/list.hpp"
#include "blockyard/rb_map.hpp"
#include "blockyard/rb_set.hpp"
#include "failing.hpp"

namespace blockyard {
namespace {

/// Runs `operation` with its 1st, 2nd, ... allocation failing until it succeeds. `check` runs after each failure.
template <class Operation, class Check>
void fail_each_allocation(Operation&& operation, Check&& check) {
  for (int countdown = 0;; ++countdown) {
    ASSERT_LT(countdown, 100000) << "the operation never succeeds";
    Failing::fail_after(countdown);
    bool failed = false;
    try {
      operation();
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    Failing::never_fail();
    if (!failed) {
      return;
    }
    check();
  }
}

template <class Tested>
void fail_each_allocation_of_a_copy(const Tested& original) {
  const std::size_t size = original.size();
  fail_each_allocation(
      [&] {
        const Tested copy(original);
        ASSERT_TRUE(copy.size() == size && copy.invariants_hold());
      },
      [&] { ASSERT_TRUE(original.size() == size && original.invariants_hold()); });
}

class AllocationFailure : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(Failing::live(), live_) << "a container left blocks behind"; }

 private:
  std::size_t live_ = Failing::live();
};

TEST_F(AllocationFailure, list_is_as_before_each_failed_insert_and_copy) {
  using Tested = List<std::string>;
  Tested list;
  for (std::size_t i = 0; i < 200; ++i) {
    const std::string value = "a value too long for the string itself " + std::to_string(i);
    fail_each_allocation([&] { list.push_back(value); },
                         [&] { ASSERT_TRUE(list.size() == i && list.invariants_hold()); });
  }
  fail_each_allocation(
      [&] {
        const Tested copy(list);
        ASSERT_EQ(copy, list);
      },
      [&] { ASSERT_EQ(list.size(), 200u); });
  fail_each_allocation([&] { list.sort(); }, [&] { ASSERT_TRUE(list.invariants_hold()); });
}

TEST_F(AllocationFailure, hash_map_is_as_before_each_failed_insert_and_copy) {
  using Tested = HashMap<std::string, std::string>;
  Tested map;
  for (std::size_t i = 0; i < 200; ++i) {
    const std::string key = "a key too long for the string itself " + std::to_string(i);
    fail_each_allocation([&] { map.insert(key, key); },
                         [&] { ASSERT_TRUE(map.size() == i && !map.has(key) && map.invariants_hold()); });
  }
  fail_each_allocation_of_a_copy(map);
}

TEST_F(AllocationFailure, rb_map_is_as_before_each_failed_insert_and_copy) {
  using Tested = RBMap<std::uint64_t, std::string>;
  Tested map;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const std::uint64_t key = i * 7919 % 401;
    fail_each_allocation([&] { map.insert(key, "a value too long for the string itself"); },
                         [&] { ASSERT_TRUE(map.size() == i && !map.has(key)); });
    if (i % 50 == 0) {
      ASSERT_TRUE(map.invariants_hold());
    }
  }
  fail_each_allocation_of_a_copy(map);
}

// The other operations that allocate: number keys, whose index is an array; both ends; reserve; sort; replaced keys.
TEST_F(AllocationFailure, hash_map_of_numbers_is_as_before_each_failed_operation) {
  using Tested = HashMap<int, std::string>;
  Tested map;
  const std::string value = "a value too long for the string itself";
  const auto has_first = [&](std::size_t entries) { return map.size() == entries && map.invariants_hold(); };
  for (int i = 0; i < 200; ++i) {
    const int key = i * (i % 16 == 15 ? 1'000'003 : 1);
    fail_each_allocation([&] { map.insert(key, value, i % 3 == 0); },
                         [&] { ASSERT_TRUE(has_first(static_cast<std::size_t>(i)) && !map.has(key)); });
  }
  fail_each_allocation([&] { map[-1] = value; },
                       [&] { ASSERT_TRUE(map.invariants_hold() && (!map.has(-1) || map.get(-1).empty())); });
  fail_each_allocation([&] { ASSERT_TRUE(map.replace_key(-1, 5'000'000)); },
                       [&] { ASSERT_TRUE(has_first(201) && map.has(-1) && !map.has(5'000'000)); });
  fail_each_allocation([&] { map.reserve(10'000); }, [&] { ASSERT_TRUE(has_first(201)); });
  const int first = map.begin()->key;
  fail_each_allocation([&] { map.sort(); },
                       [&] { ASSERT_TRUE(has_first(201) && map.begin()->key == first) << "half sorted"; });
  EXPECT_EQ(map.begin()->key, 0);
  fail_each_allocation([] { const Tested made{{1, "one"}, {2, "two"}, {-7, std::string(50, 'x')}}; }, [] {});
}

TEST_F(AllocationFailure, rb_set_is_as_before_each_failed_insert_and_copy) {
  using Tested = RBSet<std::string>;
  Tested set;
  for (std::size_t i = 0; i < 300; ++i) {
    const std::string value = std::to_string(i * 7919 % 401) + " is too long for the string itself";
    fail_each_allocation([&] { set.insert(value); },
                         [&] { ASSERT_TRUE(set.size() == i && !set.has(value) && set.invariants_hold()); });
  }
  fail_each_allocation_of_a_copy(set);
}

TEST_F(AllocationFailure, containers_with_an_allocator_of_their_own_are_as_before) {
  List<std::string, DirectBlocks> list;
  HashMap<std::string, int, HasherDefault, ComparatorDefault<std::string>, DirectBlocks> map;
  RBMap<std::string, int, container::LessDefault, DirectBlocks> ordered;
  for (int i = 0; i < 100; ++i) {
    const auto size = static_cast<std::size_t>(i);
    const std::string value = std::to_string(i) + " is too long for the string itself";
    fail_each_allocation([&] { list.push_front(value); },
                         [&] { ASSERT_TRUE(list.size() == size && list.invariants_hold()); });
    fail_each_allocation([&] { map.insert(value, i); },
                         [&] { ASSERT_TRUE(map.size() == size && map.invariants_hold()); });
    fail_each_allocation([&] { ordered[value] = i; },
                         [&] { ASSERT_TRUE(ordered.size() == size && ordered.invariants_hold()); });
  }
}

}  // namespace
}  // namespace blockyard
