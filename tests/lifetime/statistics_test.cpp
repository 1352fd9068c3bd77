// What is counted, and the text of it.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <string>

#include "blockyard/lifetime.hpp"
#include "own_thread.hpp"

namespace {

using namespace blockyard;

by_statistics_t statistics() {
  by_statistics_t all;
  by_statistics(&all);
  return all;
}

TEST(Statistics, the_peak_of_each_frame_falls_into_a_power_of_two_of_kib) {
  on_a_new_thread([] {
    const by_statistics_t before = statistics();
    for (const std::size_t peak : {std::size_t{1023}, std::size_t{1024}, std::size_t{2047}, std::size_t{2048}}) {
      const std::size_t half = peak / 2;
      void* const block = temp_allocate(half, 1);
      temp_deallocate(temp_allocate(peak - half, 1));  // taken back, and yet part of the peak
      temp_deallocate(block, half);
      by_thread_end_frame();
    }
    const by_statistics_t after = statistics();
    EXPECT_EQ(after.temp.frames_by_peak[0] - before.temp.frames_by_peak[0], 1u);
    EXPECT_EQ(after.temp.frames_by_peak[1] - before.temp.frames_by_peak[1], 2u);
    EXPECT_EQ(after.temp.frames_by_peak[2] - before.temp.frames_by_peak[2], 1u);
    EXPECT_EQ(after.temp.frames - before.temp.frames, 4u);
  });
}

TEST(Statistics, threads_that_have_ended_are_part_of_the_sum) {
  const by_statistics_t before = statistics();
  on_a_new_thread([] {
    static_cast<void>(temp_allocate(10, 1));
    by_thread_end_frame();
    by_thread_end_frame();
  });
  // Its end ends a frame, too.
  EXPECT_EQ(statistics().temp.frames - before.temp.frames, 3u);
}

TEST(Statistics, frames_of_the_program_are_counted) {
  const by_statistics_t before = statistics();
  by_frame_end(0);
  by_frame_end(0);
  EXPECT_EQ(statistics().frames - before.frames, 2u);
}

TEST(Statistics, a_block_with_a_chunk_of_its_own_is_counted) {
  const by_statistics_t before = statistics();
  void* const block = allocate(1 << 20, 16, Lifetime::temp_job);
  EXPECT_EQ(statistics().temp_job_large - before.temp_job_large, 1u);
  EXPECT_GE(statistics().temp_job_peak_bytes, std::size_t{1} << 20);
  deallocate(block, Lifetime::temp_job);
}

TEST(Statistics, the_text_has_every_figure_by_thread) {
  static_cast<void>(temp_allocate(5000, 1));
  by_thread_end_frame();
  FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  by_statistics_dump(fileno(file));
  std::rewind(file);
  std::string text(10'000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  for (const char* part : {"temp, all threads", "temp, thread ", "peak [4 KiB-8 KiB): ", "high-water mark",
                           "overflow count (too large)", "overflow count (full)", "temp job"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in\n" << text;
  }
}

}  // namespace
