// What is counted of a program that runs, event by event.
#include "live/counts.hpp"

#include <gtest/gtest.h>

namespace blockyard::live {
namespace {

using journal::Event;
using journal::Kind;

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t budget = 16 * ms;

class CountsTest : public ::testing::Test {
 protected:
  std::uint64_t allocate(std::uint64_t ns, std::uint64_t size, std::uint32_t site = journal::no_site,
                         std::uint32_t thread = 0) {
    Event event;
    event.time_ns = ns;
    event.size = size;
    event.block = next_++;
    event.site = site;
    event.thread = thread;
    counts_.add(event);
    return event.block;
  }
  void free(std::uint64_t ns, std::uint64_t block) {
    Event event;
    event.kind = Kind::free;
    event.time_ns = ns;
    event.block = block;
    counts_.add(event);
  }
  void mark_frame(std::uint64_t ns, std::uint32_t thread = 0) {
    Event event;
    event.kind = Kind::frame_mark;
    event.time_ns = ns;
    event.thread = thread;
    counts_.add(event);
  }

  Counts counts_{budget};
  std::uint64_t next_ = 0;
};

TEST_F(CountsTest, what_is_freed_is_held_no_more_and_the_peak_stays) {
  const std::uint64_t first = allocate(1 * ms, 100);
  allocate(2 * ms, 50);
  free(3 * ms, first);
  EXPECT_EQ(counts_.live().blocks, 1u);
  EXPECT_EQ(counts_.live().bytes, 50u);
  EXPECT_EQ(counts_.peak_bytes(), 150u);
  EXPECT_EQ(counts_.all().allocations, 2u);
  EXPECT_EQ(counts_.all().frees, 1u);
}

TEST_F(CountsTest, blocks_that_live_long_are_held_until_they_are_freed) {
  constexpr std::uint64_t many = 3'000'000;
  for (std::uint64_t i = 0; i < many; ++i) {
    const std::uint64_t block = allocate(i, 1 + i % 3, 1);
    if (i % 3 != 0) free(i, block);
  }
  EXPECT_EQ(counts_.live().blocks, many / 3);
  for (std::uint64_t block = 0; block < many; block += 3) free(many, block);
  EXPECT_EQ(counts_.live().blocks, 0u);
  EXPECT_EQ(counts_.stacks()[2].live_bytes, 0u);
  EXPECT_THROW(free(many, 3), journal::Error);
}

TEST_F(CountsTest, a_block_that_is_not_alive_can_not_be_freed) {
  const std::uint64_t block = allocate(1 * ms, 100);
  free(2 * ms, block);
  EXPECT_THROW(free(3 * ms, block), journal::Error);
}

TEST_F(CountsTest, frames_lie_between_the_marks_of_the_thread_that_marks_most) {
  mark_frame(1 * ms);
  allocate(2 * ms, 10, 3);
  allocate(3 * ms, 10, 3);
  allocate(4 * ms, 10, 4, 1);  // another thread's
  mark_frame(11 * ms);
  mark_frame(31 * ms);
  mark_frame(35 * ms);
  ASSERT_EQ(counts_.frame_count(), 3u);
  EXPECT_EQ(counts_.over_budget(), 1u);
  const Frame& first = counts_.frames().front();
  EXPECT_EQ(first.number, 1u);
  EXPECT_EQ(first.length_ns, 10 * ms);
  EXPECT_EQ(first.allocations, 2u);
  ASSERT_EQ(first.sites.size(), 1u);
  EXPECT_EQ(first.sites[0].stack, 4u);
  EXPECT_EQ(first.sites[0].bytes, 20u);
  EXPECT_EQ(counts_.frames()[1].length_ns, 20 * ms);
}

TEST_F(CountsTest, without_marks_a_frame_is_a_sixtieth_of_a_second_of_all_threads) {
  allocate(1 * ms, 10, 1, 0);
  allocate(2 * ms, 10, 2, 1);
  allocate(40 * ms, 10, 1);
  ASSERT_EQ(counts_.frame_count(), 2u);
  EXPECT_EQ(counts_.frames()[0].allocations, 2u);
  EXPECT_EQ(counts_.frames()[1].allocations, 0u);
  EXPECT_EQ(counts_.over_budget(), 0u);
}

TEST_F(CountsTest, a_pause_of_hours_keeps_no_more_frames_than_others) {
  allocate(1 * ms, 10);
  allocate(10'000'000 * ms, 10);
  EXPECT_EQ(counts_.frames().size(), Counts::kept_frames);
  allocate(10'000'100 * ms, 10);
  std::uint64_t allocations = 0;
  for (const Frame& frame : counts_.frames()) allocations += frame.allocations;
  EXPECT_EQ(allocations, 1u);
}

TEST_F(CountsTest, since_the_mark_counts_what_was_allocated_after_it_and_stays) {
  const std::uint64_t older = allocate(1 * ms, 1000, 5);
  counts_.mark(2 * ms);
  allocate(1 * ms + ms / 2, 7, 5);  // before the mark, and read after it was set
  const std::uint64_t gone = allocate(3 * ms, 10, 5);
  allocate(4 * ms, 20, 5);
  free(5 * ms, gone);
  free(6 * ms, older);
  EXPECT_EQ(counts_.since_mark(6).blocks, 1u);
  EXPECT_EQ(counts_.since_mark(6).bytes, 20u);
  EXPECT_EQ(counts_.stacks()[6].live_bytes, 27u);
  EXPECT_EQ(counts_.older_freed().bytes, 1000u);
}

TEST_F(CountsTest, the_preamble_is_held_and_nobody_allocated_it) {
  allocate(0, 100, 1);
  allocate(5 * ms, 10, 1);
  EXPECT_EQ(counts_.live().blocks, 2u);
  EXPECT_EQ(counts_.all().allocations, 1u);
}

TEST_F(CountsTest, a_window_begins_anew_after_its_report_and_the_last_one_stays) {
  allocate(1 * ms, 100, 1);
  counts_.end_window(false);
  EXPECT_EQ(counts_.window().allocations, 0u);
  EXPECT_EQ(counts_.last_allocations(2), 1u);
  allocate(2 * ms, 100, 1);
  allocate(3 * ms, 100, 1);
  counts_.end_window(true);
  EXPECT_EQ(counts_.window().allocations, 2u);
  EXPECT_EQ(counts_.last_allocations(2), 2u);
  EXPECT_EQ(counts_.window_ns(), 2 * ms);
}

}  // namespace
}  // namespace blockyard::live
