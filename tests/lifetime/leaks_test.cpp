// The rule of four frames, and the stack that allocated a block.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "blockyard/lifetime.hpp"

namespace {

using namespace blockyard;

class Leaks : public testing::Test {
 protected:
  void TearDown() override {
    by_leaks_set(BY_LEAKS_OFF);
    by_temp_job_set_frames(4);
  }
};

// What `frames` frame ends write to standard error.
std::string end_frames(int frames) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < frames; ++i) {
    by_frame_end(0);
  }
  return testing::internal::GetCapturedStderr();
}

TEST_F(Leaks, a_block_is_reported_once_when_it_is_older_than_four_frames_and_stays_valid) {
  by_leaks_set(BY_LEAKS_ON);
  const std::uint64_t before = by_leaks_reported();
  int* const block = make<int>(Lifetime::temp_job, 42);
  EXPECT_EQ(end_frames(4), "");
  const std::string report = end_frames(1);
  EXPECT_NE(report.find("a temp job block of 4 bytes"), std::string::npos) << report;
  EXPECT_NE(report.find("has lived for 5 frames, 4 are allowed"), std::string::npos) << report;
  EXPECT_EQ(end_frames(10), "");
  EXPECT_EQ(by_leaks_reported(), before + 1);
  EXPECT_EQ(*block, 42);
  destroy(block, Lifetime::temp_job);
}

TEST_F(Leaks, a_block_freed_in_time_is_not_reported) {
  by_leaks_set(BY_LEAKS_ON);
  int* const block = make<int>(Lifetime::temp_job, 1);
  EXPECT_EQ(end_frames(4), "");
  destroy(block, Lifetime::temp_job);
  EXPECT_EQ(end_frames(3), "");
}

TEST_F(Leaks, the_number_of_frames_can_be_set) {
  by_leaks_set(BY_LEAKS_ON);
  by_temp_job_set_frames(1);
  int* const block = make<int>(Lifetime::temp_job, 1);
  EXPECT_EQ(end_frames(1), "");
  EXPECT_NE(end_frames(1), "");
  destroy(block, Lifetime::temp_job);
}

TEST_F(Leaks, nothing_is_reported_while_detection_is_off) {
  int* const block = make<int>(Lifetime::temp_job, 1);
  EXPECT_EQ(end_frames(10), "");
  destroy(block, Lifetime::temp_job);
}

TEST_F(Leaks, a_block_followed_before_detection_was_switched_off_is_reported_once_it_is_on_again) {
  by_leaks_set(BY_LEAKS_ON);
  int* const block = make<int>(Lifetime::temp_job, 1);
  by_leaks_set(BY_LEAKS_OFF);
  EXPECT_EQ(end_frames(10), "");
  by_leaks_set(BY_LEAKS_ON);
  EXPECT_NE(end_frames(1).find("a temp job block of 4 bytes"), std::string::npos);
  destroy(block, Lifetime::temp_job);
}

TEST_F(Leaks, eight_workers_that_end_their_own_frames_do_not_age_temp_job) {
  by_leaks_set(BY_LEAKS_ON);
  int* const block = make<int>(Lifetime::temp_job, 1);
  testing::internal::CaptureStderr();
  std::vector<std::thread> workers;
  for (int i = 0; i < 8; ++i) {
    workers.emplace_back([] {
      for (int frame = 0; frame < 100; ++frame) {
        static_cast<void>(temp_allocate(64, 16));
        by_thread_end_frame();
      }
    });
  }
  for (std::thread& worker : workers) {
    worker.join();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  destroy(block, Lifetime::temp_job);
}

TEST_F(Leaks, a_temp_block_that_did_not_fit_its_region_is_no_leak) {
  by_leaks_set(BY_LEAKS_ON);
  std::thread([] { static_cast<void>(temp_allocate(std::size_t{64} << 20, 16)); }).join();
  EXPECT_EQ(end_frames(10), "");
}

}  // namespace

// Not inline, since the report must name them. Only the file's symbol table has the second one, which is static.
[[gnu::noinline]] int* allocate_for_the_pathfinder() {
  int* const block = make<int>(Lifetime::temp_job, 1);
  asm volatile("" ::: "memory");  // no tail call
  return block;
}
[[gnu::noinline]] static int* allocate_in_a_static_function() {
  int* const block = make<int>(Lifetime::temp_job, 2);
  asm volatile("" ::: "memory");
  return block;
}
[[gnu::noinline]] void* allocate_as_the_last_act() { return allocate(64, 16, Lifetime::temp_job); }

namespace {

TEST_F(Leaks, a_function_that_allocates_as_its_last_act_is_named) {
  by_leaks_set(BY_LEAKS_STACKS);
  void* const block = allocate_as_the_last_act();
  const std::string report = end_frames(5);
  EXPECT_NE(report.find("  at allocate_as_the_last_act()+0x"), std::string::npos) << report;
  deallocate(block, Lifetime::temp_job);
}

TEST_F(Leaks, with_stacks_the_report_names_the_functions_that_allocated) {
  by_leaks_set(BY_LEAKS_STACKS);
  int* const first = allocate_for_the_pathfinder();
  int* const second = allocate_in_a_static_function();
  const std::string report = end_frames(5);
  EXPECT_NE(report.find("  at allocate_for_the_pathfinder()+0x"), std::string::npos) << report;
  EXPECT_NE(report.find("  at allocate_in_a_static_function()+0x"), std::string::npos) << report;
  EXPECT_EQ(report.find("by_temp_job_allocate"), std::string::npos) << report;
  destroy(first, Lifetime::temp_job);
  destroy(second, Lifetime::temp_job);
}

TEST_F(Leaks, without_stacks_it_names_none) {
  by_leaks_set(BY_LEAKS_ON);
  int* const block = allocate_for_the_pathfinder();
  EXPECT_EQ(end_frames(5).find("  at "), std::string::npos);
  destroy(block, Lifetime::temp_job);
}

}  // namespace
