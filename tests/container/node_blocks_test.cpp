// Copy, move and swap of containers over each kind of allocator: what is shared, and what ends when.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "blockyard/hash_map.hpp"
#include "blockyard/list.hpp"
#include "blockyard/rb_map.hpp"
#include "blockyard/rb_set.hpp"
#include "container/paged_nodes.hpp"

namespace blockyard {
namespace {

// The containers under test, and how a value is added to each.
template <class A>
struct ListOf {
  using Container = List<std::string, A>;
  static void add(Container& container, int number) { container.push_back(std::to_string(number)); }
  static void assign_two(Container& container) { container = {"1", "2"}; }
};
template <class A>
struct HashMapOf {
  using Container = HashMap<int, std::string, HasherDefault, ComparatorDefault<int>, A>;
  static void add(Container& container, int number) { container.insert(number, std::to_string(number)); }
  static void assign_two(Container& container) { container = {{1, "1"}, {2, "2"}}; }
};
template <class A>
struct RBMapOf {
  using Container = RBMap<int, std::string, container::LessDefault, A>;
  static void add(Container& container, int number) { container.insert(number, std::to_string(number)); }
  static void assign_two(Container& container) { container = {{1, "1"}, {2, "2"}}; }
};
template <class A>
struct RBSetOf {
  using Container = RBSet<std::string, container::LessDefault, A>;
  static void add(Container& container, int number) { container.insert(std::to_string(number)); }
  static void assign_two(Container& container) { container = {"1", "2"}; }
};

template <class Of>
void fill(typename Of::Container& container, int from, int to) {
  for (int i = from; i < to; ++i) {
    Of::add(container, i);
  }
}

template <class Of>
class AnyContainer : public testing::Test {};
using AllContainers =
    testing::Types<ListOf<StaticBlocks>, ListOf<DirectBlocks>, ListOf<MallocBlocks>, ListOf<PagedNodes>,
                   HashMapOf<StaticBlocks>, HashMapOf<DirectBlocks>, HashMapOf<MallocBlocks>, HashMapOf<PagedNodes>,
                   RBMapOf<StaticBlocks>, RBMapOf<DirectBlocks>, RBMapOf<MallocBlocks>, RBMapOf<PagedNodes>,
                   RBSetOf<StaticBlocks>, RBSetOf<DirectBlocks>>;
TYPED_TEST_SUITE(AnyContainer, AllContainers);

TYPED_TEST(AnyContainer, a_copy_is_independent) {
  typename TypeParam::Container a;
  fill<TypeParam>(a, 0, 500);
  typename TypeParam::Container b(a);
  fill<TypeParam>(b, 500, 600);
  a.clear();
  EXPECT_EQ(b.size(), 600u);
  EXPECT_TRUE(b.invariants_hold());
  a = b;
  EXPECT_EQ(a.size(), 600u);
}

TYPED_TEST(AnyContainer, a_move_leaves_an_empty_container_that_works) {
  typename TypeParam::Container a;
  fill<TypeParam>(a, 0, 500);
  typename TypeParam::Container b(std::move(a));
  EXPECT_EQ(b.size(), 500u);
  EXPECT_TRUE(a.is_empty());
  fill<TypeParam>(a, 0, 10);
  b = std::move(a);
  EXPECT_EQ(b.size(), 10u);
  EXPECT_TRUE(b.invariants_hold());
  fill<TypeParam>(b, 10, 20);
  EXPECT_EQ(b.size(), 20u);
}

TYPED_TEST(AnyContainer, assigned_to_itself_the_elements_stay_where_they_are) {
  typename TypeParam::Container a;
  fill<TypeParam>(a, 0, 500);
  auto& same = a;
  const auto* const first = &*a.begin();
  a = same;
  EXPECT_EQ(&*a.begin(), first);
  a = std::move(same);
  EXPECT_EQ(&*a.begin(), first);
  EXPECT_EQ(a.size(), 500u);
  EXPECT_TRUE(a.invariants_hold());
}

TYPED_TEST(AnyContainer, swap_exchanges_everything) {
  typename TypeParam::Container a;
  typename TypeParam::Container b;
  fill<TypeParam>(a, 0, 100);
  swap(a, b);
  EXPECT_TRUE(a.is_empty());
  EXPECT_EQ(b.size(), 100u);
  fill<TypeParam>(a, 0, 7);
  swap(a, b);
  EXPECT_EQ(a.size(), 100u);
  EXPECT_TRUE(a.invariants_hold() && b.invariants_hold());
}

template <class Of>
class SharingContainer : public testing::Test {};
using SharingContainers =
    testing::Types<ListOf<DirectBlocks>, HashMapOf<DirectBlocks>, RBMapOf<DirectBlocks>, RBSetOf<DirectBlocks>>;
TYPED_TEST_SUITE(SharingContainer, SharingContainers);

TYPED_TEST(SharingContainer, several_take_from_one_allocator_and_give_back_their_own_only) {
  using Container = typename TypeParam::Container;
  BlockAllocator blocks(Container::block_bytes(), Container::block_alignment());
  {
    Container a(blocks);
    Container b(blocks);
    fill<TypeParam>(a, 0, 300);
    fill<TypeParam>(b, 0, 200);
    EXPECT_EQ(blocks.statistics().live_blocks, 500u);
    a.clear();
    EXPECT_EQ(blocks.statistics().live_blocks, 200u);
    const Container copy(b);
    EXPECT_EQ(blocks.statistics().live_blocks, 400u) << "a copy shares the allocator";
    Container moved(std::move(b));
    EXPECT_EQ(blocks.statistics().live_blocks, 400u);
  }
  EXPECT_EQ(blocks.statistics().live_blocks, 0u);
  EXPECT_TRUE(blocks.invariants_hold());
}

TYPED_TEST(SharingContainer, one_that_a_list_of_values_is_assigned_to_keeps_its_allocator) {
  using Container = typename TypeParam::Container;
  BlockAllocator blocks(Container::block_bytes(), Container::block_alignment());
  Container container(blocks);
  fill<TypeParam>(container, 0, 100);
  TypeParam::assign_two(container);
  EXPECT_EQ(container.size(), 2u);
  EXPECT_EQ(blocks.statistics().live_blocks, 2u);
  container = {};
  fill<TypeParam>(container, 0, 5);
  EXPECT_EQ(blocks.statistics().live_blocks, 5u);
  EXPECT_TRUE(container.invariants_hold());
}

TYPED_TEST(SharingContainer, an_allocator_whose_blocks_are_too_small_is_refused) {
  using Container = typename TypeParam::Container;
  BlockAllocator small(8, 8);
  EXPECT_THROW(Container container(small), std::invalid_argument);
}

TYPED_TEST(SharingContainer, moved_between_a_shared_and_an_own_allocator_the_nodes_keep_theirs) {
  using Container = typename TypeParam::Container;
  BlockAllocator blocks(Container::block_bytes(), Container::block_alignment());
  Container own;
  fill<TypeParam>(own, 0, 100);
  {
    Container shared(blocks);
    fill<TypeParam>(shared, 0, 50);
    swap(own, shared);
    EXPECT_EQ(own.size(), 50u);
    EXPECT_EQ(shared.size(), 100u);
    own = std::move(shared);
    EXPECT_EQ(blocks.statistics().live_blocks, 0u);
  }
  fill<TypeParam>(own, 100, 200);
  EXPECT_EQ(own.size(), 200u);
}

TEST(StaticContainers, a_container_made_on_one_thread_is_used_and_ended_on_another) {
  List<std::string> list;
  HashMap<int, std::string> map;
  std::thread([&] {
    fill<ListOf<StaticBlocks>>(list, 0, 10000);
    fill<HashMapOf<StaticBlocks>>(map, 0, 10000);
  }).join();
  std::thread([list = std::move(list), map = std::move(map)]() mutable {
    fill<ListOf<StaticBlocks>>(list, 10000, 20000);
    fill<HashMapOf<StaticBlocks>>(map, 10000, 20000);
    EXPECT_TRUE(list.invariants_hold() && map.invariants_hold());
  }).join();
  using Blocks = StaticBlockAllocator<List<std::string>::block_bytes(), List<std::string>::block_alignment()>;
  EXPECT_EQ(Blocks::statistics().live_blocks, 0u);
}

}  // namespace
}  // namespace blockyard
