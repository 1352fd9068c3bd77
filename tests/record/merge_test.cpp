// The merge puts records of many lanes in one order.
#include "record/collect/merge.hpp"

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {

using namespace blockyard::record;

/// Keeps what it is given; knows which addresses live.
class Collected : public RecordSink {
 public:
  struct Entry {
    std::uint32_t thread;
    std::uint64_t stamp;
    std::uint64_t first;
  };
  void prefetch(const std::uint64_t* record) const override { announced.insert(record[0]); }
  void apply(std::uint32_t thread, std::uint64_t stamp, const std::uint64_t* record) override {
    const auto found = announced.find(record[0]);
    ASSERT_NE(found, announced.end()) << "each record is announced once before it comes";
    announced.erase(found);
    entries.push_back({thread, stamp, record[0]});
    const std::uint64_t address = payload_of(record[0]);
    if (kind_of(record[0]) == RecordKind::free) {
      violations += live.erase(address) == 0 ? 1 : 0;
    } else {
      violations += live.insert(address).second ? 0 : 1;
    }
  }
  bool is_possible(const std::uint64_t* record) const override {
    const bool lives = live.contains(payload_of(record[0]));
    return kind_of(record[0]) == RecordKind::free ? lives : !lives;
  }
  std::vector<Entry> entries;
  std::set<std::uint64_t> live;
  int violations = 0;
  mutable std::multiset<std::uint64_t> announced;
};

void put(Lane& lane, RecordKind kind, std::uint64_t address, std::uint64_t stamp) {
  const std::uint64_t first = pack(kind, address);
  const std::vector<std::uint64_t> words = {first, stamp, pack_size(16, 0), 0};
  lane.take(words.data(), 3, 0, words_of(first));
}

class MergeOf : public testing::TestWithParam<std::uint32_t> {};

TEST_P(MergeOf, lanes_gives_records_in_the_order_of_their_stamps) {
  std::vector<Lane> lanes;
  for (std::uint32_t i = 0; i < GetParam(); ++i) lanes.emplace_back(i);
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> clocks(lanes.size(), 0);
  for (std::uint64_t address = 1; address <= 10'000; ++address) {
    const std::size_t lane = random() % lanes.size();
    put(lanes[lane], RecordKind::allocate, address, clocks[lane] += 1 + random() % 100);
  }
  std::vector<Lane*> pointers;
  for (Lane& lane : lanes) pointers.push_back(&lane);
  Collected collected;
  EXPECT_EQ(merge(pointers, ~std::uint64_t{0}, ~std::size_t{0}, collected), 10'000u);
  for (std::size_t i = 1; i < collected.entries.size(); ++i) {
    ASSERT_LE(collected.entries[i - 1].stamp, collected.entries[i].stamp) << "record " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Merge, MergeOf, testing::Values(1, 2, 3, 4, 7, 300));

TEST(Merge, holds_back_what_is_not_below_the_watermark) {
  Lane lane(0);
  put(lane, RecordKind::allocate, 1, 10);
  put(lane, RecordKind::allocate, 2, 20);
  Lane* const pointers[] = {&lane};
  Collected collected;
  EXPECT_EQ(merge(pointers, 20, 100, collected), 1u);
  EXPECT_EQ(merge(pointers, 21, 100, collected), 1u);
}

TEST(Merge, stops_at_its_budget_and_continues_from_there) {
  Lane first(0);
  Lane second(1);
  for (std::uint64_t i = 0; i < 10; ++i) {
    put(first, RecordKind::allocate, 2 * i + 1, 2 * i);
    put(second, RecordKind::allocate, 2 * i + 2, 2 * i + 1);
  }
  Lane* const pointers[] = {&first, &second};
  Collected collected;
  std::size_t calls = 0;
  while (merge(pointers, 1000, 3, collected) != 0) ++calls;
  EXPECT_EQ(calls, 7u);
  EXPECT_EQ(collected.entries.size(), 20u);
}

TEST(Merge, orders_equal_stamps_by_what_is_possible) {
  // One coarse tick in which a block goes from hand to hand: given by 0, freed by 1, given by 2, freed by 0.
  Lane giver(0);
  Lane freer(1);
  Lane taker(2);
  put(giver, RecordKind::allocate, 99, 5);
  put(giver, RecordKind::free, 99, 5);
  put(freer, RecordKind::free, 99, 5);
  put(taker, RecordKind::allocate, 99, 5);
  Lane* const pointers[] = {&taker, &freer, &giver};
  Collected collected;
  merge(pointers, 6, 100, collected);
  EXPECT_EQ(collected.entries.size(), 4u);
  EXPECT_EQ(collected.violations, 0);
  EXPECT_TRUE(collected.live.empty());
}

TEST(Merge, of_equal_stamps_a_thread_that_freed_the_block_had_it_before_one_that_kept_it) {
  Lane keeper(0);
  Lane passer(1);
  put(keeper, RecordKind::allocate, 99, 5);
  put(keeper, RecordKind::free, 99, 6);
  put(passer, RecordKind::allocate, 99, 5);
  put(passer, RecordKind::allocate, 98, 5);
  put(passer, RecordKind::free, 99, 5);
  Lane* const pointers[] = {&keeper, &passer};
  Collected collected;
  merge(pointers, 7, 100, collected);
  EXPECT_EQ(collected.entries.size(), 5u);
  EXPECT_EQ(collected.violations, 0);
}

TEST(Lane, keeps_records_whole_across_the_end_of_a_ring) {
  std::vector<std::uint64_t> ring(8);
  const std::uint64_t first = pack(RecordKind::allocate, 7);
  ring[7] = first;  // the record's words 7, 8 and 9 of a ring of 8
  ring[0] = 123;
  ring[1] = pack_size(64, 0);
  Lane lane(0);
  lane.take(ring.data(), 7, 7, 10);
  ASSERT_FALSE(lane.empty());
  EXPECT_EQ(lane.front()[0], first);
  EXPECT_EQ(lane.front_stamp(), 123u);
  EXPECT_EQ(lane.front()[2], pack_size(64, 0));
  lane.pop();
  EXPECT_TRUE(lane.empty());
}

TEST(Lane, never_lets_a_stamp_fall_behind_the_one_before) {
  Lane lane(0);
  put(lane, RecordKind::allocate, 1, 50);
  put(lane, RecordKind::allocate, 2, 40);
  lane.pop();
  EXPECT_EQ(lane.front_stamp(), 50u);
}

}  // namespace
