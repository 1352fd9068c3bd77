// Allocation fails at every allocation in turn: each operation throws, leaves the container as it was, and leaks
// nothing.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

#include "blockyard/hash_map.hpp"
#include "blockyard/list.hpp"
#include "blockyard/rb_map.hpp"
#include "failing.hpp"

namespace blockyard {
namespace {

/// Runs `operation` with the 1st, 2nd, ... allocation failing until it needs no further one; after each failure `check`
/// runs.
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

TEST(AllocationFailure, list_is_as_before_each_failed_insert_and_copy) {
  using Tested = List<std::string>;
  const std::size_t live = Failing::live();
  {
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
  EXPECT_EQ(Failing::live(), live);
}

TEST(AllocationFailure, hash_map_is_as_before_each_failed_insert_and_copy) {
  using Tested = HashMap<std::string, std::string>;
  const std::size_t live = Failing::live();
  {
    Tested map;
    for (std::size_t i = 0; i < 200; ++i) {
      const std::string key = "a key too long for the string itself " + std::to_string(i);
      fail_each_allocation([&] { map.insert(key, key); },
                           [&] { ASSERT_TRUE(map.size() == i && !map.has(key) && map.invariants_hold()); });
    }
    fail_each_allocation(
        [&] {
          const Tested copy(map);
          ASSERT_EQ(copy.size(), 200u);
        },
        [&] { ASSERT_TRUE(map.invariants_hold()); });
  }
  EXPECT_EQ(Failing::live(), live);
}

TEST(AllocationFailure, rb_map_is_as_before_each_failed_insert_and_copy) {
  using Tested = RBMap<std::uint64_t, std::string>;
  const std::size_t live = Failing::live();
  {
    Tested map;
    for (std::uint64_t i = 0; i < 400; ++i) {
      const std::uint64_t key = i * 7919 % 401;
      fail_each_allocation([&] { map.insert(key, "a value too long for the string itself"); },
                           [&] { ASSERT_TRUE(map.size() == i && !map.has(key)); });
      if (i % 50 == 0) {
        ASSERT_TRUE(map.invariants_hold());
      }
    }
    fail_each_allocation(
        [&] {
          const Tested copy(map);
          ASSERT_TRUE(copy.invariants_hold());
        },
        [&] { ASSERT_EQ(map.size(), 400u); });
  }
  EXPECT_EQ(Failing::live(), live);
}

}  // namespace
}  // namespace blockyard
