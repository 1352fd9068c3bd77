// List beyond the differential test: sizes, ends, owners, exceptions.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "blockyard/list.hpp"

namespace blockyard {
namespace {

static_assert(sizeof(List<int>::Element) == 12);
static_assert(sizeof(List<int, DirectBlocks>::Element) == 12);
static_assert(sizeof(List<int, StaticBlocks, Owned>::Element) == 16);
static_assert(sizeof(List<int, MallocBlocks>::Element) == 24);
static_assert(std::is_nothrow_move_constructible_v<List<std::string>>);

TEST(List, an_empty_list_has_no_ends_and_ignores_pops) {
  List<int> list;
  EXPECT_TRUE(list.is_empty());
  EXPECT_EQ(list.front(), nullptr);
  EXPECT_EQ(list.back(), nullptr);
  list.pop_back();
  list.pop_front();
  EXPECT_FALSE(list.erase(nullptr));
  list.clear();
  list.reverse();
  list.sort();
  EXPECT_EQ(list.begin(), list.end());
}

TEST(List, holds_values_that_can_only_be_moved) {
  List<std::unique_ptr<int>> list;
  list.push_back(std::make_unique<int>(2));
  list.push_front(std::make_unique<int>(1));
  list.insert_after(list.front(), std::make_unique<int>(3));
  EXPECT_EQ(*list.front()->next()->get(), 3);
  List<std::unique_ptr<int>> moved = std::move(list);
  EXPECT_EQ(moved.size(), 3u);
}

TEST(List, sort_custom_orders_by_the_class_and_keeps_equals_in_order) {
  struct ByTens {
    bool operator()(int a, int b) const { return a / 10 > b / 10; }
  };
  List<int> list{11, 25, 12, 21};
  list.sort_custom<ByTens>();
  EXPECT_EQ(list, (List<int>{25, 21, 11, 12}));
}

TEST(List, get_beyond_the_end_throws) {
  List<int> list{1};
  EXPECT_THROW(static_cast<void>(list.get(1)), std::out_of_range);
}

TEST(List, a_comparison_that_throws_leaves_the_order_as_it_was) {
  struct Throws {
    bool operator()(int, int) const { throw std::runtime_error("no order"); }
  };
  List<int> list{3, 1, 2};
  EXPECT_THROW(list.sort_custom<Throws>(), std::runtime_error);
  EXPECT_TRUE(list.invariants_hold());
  EXPECT_EQ(list, (List<int>{3, 1, 2}));
}

TEST(List, a_constructor_that_throws_adds_nothing) {
  struct Fussy {
    explicit Fussy(int number) : value(number) {}
    Fussy(const Fussy& other) : value(other.value) {
      if (value == 2) {
        throw std::runtime_error("not two");
      }
    }
    int value;
  };
  List<Fussy> list;
  list.push_back(Fussy(1));
  EXPECT_THROW(list.push_back(Fussy(2)), std::runtime_error);
  EXPECT_EQ(list.size(), 1u);
  EXPECT_TRUE(list.invariants_hold());
}

TEST(List, what_was_moved_from_goes_on_with_the_allocator_that_it_shared) {
  using Tested = List<int, DirectBlocks>;
  BlockAllocator blocks(Tested::block_bytes(), Tested::block_alignment());
  Tested list(blocks);
  list.push_back(1);
  Tested moved(std::move(list));
  list.push_back(2);
  EXPECT_EQ(blocks.statistics().live_blocks, 2u);
  moved = std::move(list);
  list.push_back(3);
  EXPECT_EQ(blocks.statistics().live_blocks, 2u);
  EXPECT_EQ(moved.front()->get(), 2);
  EXPECT_EQ(list.front()->get(), 3);
}

TEST(List, an_allocator_whose_blocks_lie_where_links_do_not_reach_is_refused) {
  struct Pair {
    int first;
    int second;
  };
  // Elements of 16 bytes are linked in units of 8 bytes, elements of 12 in units of 4.
  using Pairs = List<Pair, DirectBlocks>;
  using Numbers = List<int, DirectBlocks>;
  ASSERT_EQ(Pairs::block_bytes(), 16u);
  ASSERT_EQ(Numbers::block_bytes(), 12u);
  BlockAllocator twenty(20, 4);
  BlockAllocator twenty_four(24, 4);
  EXPECT_THROW(Pairs list(twenty), std::invalid_argument);
  EXPECT_THROW(Numbers list(twenty_four), std::invalid_argument);
  Pairs pairs(twenty_four);
  Numbers numbers(twenty);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 300; ++i) {
      pairs.push_back({i, -i});
      numbers.push_back(i);
    }
    int expected = 0;
    for (const Pair& pair : pairs) {
      EXPECT_EQ(pair.first, expected++);
    }
    EXPECT_EQ(expected, 300);
    EXPECT_EQ(numbers.get(299), 299);
    pairs.clear();
    numbers.clear();
  }
}

TEST(OwnedList, an_element_goes_to_the_back_of_another_list_and_keeps_its_address) {
  List<std::string, StaticBlocks, Owned> from{"a", "b"};
  List<std::string, StaticBlocks, Owned> to{"c"};
  auto* const element = from.front();
  element->transfer_to_back(to);
  EXPECT_EQ(to.back(), element);
  EXPECT_EQ(from.size(), 1u);
  element->erase();
  EXPECT_EQ(to.size(), 1u);
  EXPECT_TRUE(from.invariants_hold() && to.invariants_hold());
}

TEST(OwnedList, an_element_stays_with_its_list_when_that_is_moved) {
  List<int, StaticBlocks, Owned> list{1, 2};
  auto* const element = list.front();
  List<int, StaticBlocks, Owned> moved(std::move(list));
  element->erase();
  EXPECT_EQ(moved.size(), 1u);
}

TEST(OwnedList, an_element_does_not_go_to_a_list_with_another_allocator) {
  List<int, DirectBlocks, Owned> from{1};
  List<int, DirectBlocks, Owned> to{2};
  EXPECT_THROW(from.front()->transfer_to_back(to), std::invalid_argument);
  EXPECT_EQ(from.size(), 1u);
}

TEST(List, a_large_list_of_trivial_elements_is_cleared_and_its_blocks_serve_again_in_order) {
  struct Trivial {
    int numbers[24];  // no other block of this program is as large
  };
  using Blocks = StaticBlockAllocator<List<Trivial>::block_bytes(), List<Trivial>::block_alignment()>;
  List<Trivial> list;
  for (int i = 0; i < 5000; ++i) {
    list.push_back({{i}});
  }
  const std::size_t held = Blocks::statistics().held_bytes;
  for (int round = 0; round < 10; ++round) {
    list.clear();
    EXPECT_EQ(Blocks::statistics().live_blocks, 0u);
    for (int i = 0; i < 5000; ++i) {
      list.push_back({{i}});
    }
    EXPECT_EQ(Blocks::statistics().live_blocks, 5000u);
  }
  EXPECT_LE(Blocks::statistics().held_bytes, 2 * held) << "cleared blocks were not used again";
}

}  // namespace
}  // namespace blockyard
