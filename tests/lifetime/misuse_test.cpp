// Processes with checks report misuse, and only misuse.
#include <gtest/gtest.h>

#include <string>

#include "shared/program.hpp"

namespace {

blockyard::testing::Ended run(const std::string& name, const std::string& environment) {
  return blockyard::testing::run_program(BLOCKYARD_MISUSE_CASES " " + name, environment);
}

void expect_caught(const std::string& name, const std::string& sentence, bool checked = true) {
  const auto outcome = run(name, checked ? "BLOCKYARD_CHECKS=1" : "");
  EXPECT_NE(outcome.status, 0) << name << " was not noticed";
#if defined(__SANITIZE_ADDRESS__)
  // A sanitizer may report it first, in its own words.
  if (outcome.said.find("AddressSanitizer") != std::string::npos) {
    return;
  }
#endif
  EXPECT_NE(outcome.said.find(sentence), std::string::npos) << outcome.said;
}

TEST(Misuse, writing_to_a_temp_block_after_its_frame_is_caught) {
  expect_caught("write_after_frame", "use after free");
}
TEST(Misuse, writing_to_a_cursors_block_after_its_frame_is_caught) {
  expect_caught("write_to_a_cursors_block_after_frame", "use after free");
}
TEST(Misuse, writing_to_a_temp_block_after_its_scope_is_caught) {
  expect_caught("write_after_scope", "use after free");
}
TEST(Misuse, writing_to_a_temp_block_outside_of_the_region_after_its_frame_is_caught) {
  expect_caught("write_to_a_block_outside_of_the_region_after_its_frame", "use after free");
}
TEST(Misuse, writing_to_a_freed_temp_job_block_is_caught_when_its_chunk_is_used_again) {
  expect_caught("write_to_a_freed_temp_job_block", "use after free");
  expect_caught("write_to_a_freed_block_of_a_thread_that_ended", "use after free");
}
TEST(Misuse, deallocating_a_block_of_an_earlier_frame_is_caught) {
  expect_caught("deallocate_after_frame", "deallocate of no live temp block");
}
TEST(Misuse, deallocating_another_threads_temp_block_is_caught_in_every_process) {
  expect_caught("temp_of_another_thread", "deallocate of no temp block of this thread");
  expect_caught("temp_of_another_thread", "deallocate of no temp block of this thread", false);
}
TEST(Misuse, a_temp_span_after_its_frame_is_caught) {
  expect_caught("stale_span", "a temp_span was used after its frame");
}
TEST(Misuse, a_double_free_of_temp_job_is_caught_in_every_process) {
  expect_caught("temp_job_double_free", "double free of a temp job block");
  expect_caught("temp_job_double_free", "double free of a temp job block", false);
}
TEST(Misuse, writing_behind_a_temp_job_block_is_caught_when_the_next_one_is_freed) {
  expect_caught("overrun_a_temp_job_block", "overrun");
}
TEST(Misuse, giving_a_temp_block_back_as_temp_job_is_caught_in_every_process) {
  for (const bool checked : {false, true}) {
    expect_caught("temp_given_back_as_temp_job", "deallocate of no temp job block", checked);
    expect_caught("temp_reallocated_as_temp_job", "deallocate of no temp job block", checked);
  }
}
TEST(Misuse, reallocating_another_threads_first_temp_block_is_caught_in_every_process) {
  for (const bool checked : {false, true}) {
    expect_caught("first_temp_block_reallocated_on_another_thread", "deallocate of no temp block of this thread",
                  checked);
  }
}
#if !defined(__SANITIZE_THREAD__)
TEST(Misuse, rewinding_an_arena_while_another_thread_allocates_is_caught) {
  expect_caught("rewind_while_allocating", "while another thread");
}
#endif
TEST(Misuse, a_temp_job_block_that_is_left_is_reported_as_the_environment_asks) {
  const auto said = [](const char* mode) {
    const auto outcome = run("leave_a_temp_job_block", std::string("BLOCKYARD_LEAKS=") + mode);
    EXPECT_EQ(outcome.status, 0) << outcome.said;
    return outcome.said;
  };
  const std::string reported = "a temp job block of 64 bytes";
#if __has_include(<sys/wait.h>)
  const std::string place = "leave_a_temp_job_block()+0x";
#else
  const std::string place = "misuse_cases.exe+0x";
#endif
  EXPECT_EQ(said("0"), "");
  EXPECT_NE(said("1").find(reported), std::string::npos);
  EXPECT_EQ(said("1").find(place), std::string::npos);
  EXPECT_NE(said("2").find(reported), std::string::npos);
  EXPECT_NE(said("2").find(place), std::string::npos);
}
TEST(Misuse, a_leak_mode_that_is_none_is_said_once_and_none_is_on) {
  for (const char* const mode : {"3", "on", "12", "-1"}) {
    const auto outcome = run("leave_a_temp_job_block", std::string("BLOCKYARD_LEAKS=") + mode);
    EXPECT_EQ(outcome.status, 0) << outcome.said;
    EXPECT_EQ(outcome.said,
              std::string("blockyard: BLOCKYARD_LEAKS=") + mode + " is not a number from 0 to 2; the default stays\n");
  }
}
TEST(Misuse, correct_use_passes_with_checks) {
  const auto outcome = run("right_use", "BLOCKYARD_CHECKS=1");
  EXPECT_EQ(outcome.status, 0) << outcome.said;
  EXPECT_EQ(outcome.said, "");
}

}  // namespace
