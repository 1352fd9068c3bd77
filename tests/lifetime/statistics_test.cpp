// What the lifetimes count, and their text.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "blockyard/lifetime.hpp"
#include "own_thread.hpp"
#include "statistics.hpp"

namespace {

using namespace blockyard;

TEST(Statistics, the_peak_of_each_frame_falls_into_a_power_of_two_of_kib) {
  on_a_new_thread([] {
    const by_lifetime_statistics before = statistics();
    for (const std::size_t peak : {std::size_t{1023}, std::size_t{1024}, std::size_t{2047}, std::size_t{2048}}) {
      const std::size_t half = peak / 2;
      void* const block = temp_allocate(half, 1);
      temp_deallocate(temp_allocate(peak - half, 1));  // taken back, and yet part of the peak
      temp_deallocate(block, half);
      by_thread_end_frame();
    }
    const by_lifetime_statistics after = statistics();
    EXPECT_EQ(after.temp.frames_by_peak[0] - before.temp.frames_by_peak[0], 1u);
    EXPECT_EQ(after.temp.frames_by_peak[1] - before.temp.frames_by_peak[1], 2u);
    EXPECT_EQ(after.temp.frames_by_peak[2] - before.temp.frames_by_peak[2], 1u);
    EXPECT_EQ(after.temp.frames - before.temp.frames, 4u);
  });
}

TEST(Statistics, threads_that_have_ended_are_part_of_the_sum) {
  const by_lifetime_statistics before = statistics();
  on_a_new_thread([] {
    static_cast<void>(temp_allocate(10, 1));
    by_thread_end_frame();
    by_thread_end_frame();
  });
  EXPECT_EQ(statistics().temp.frames - before.temp.frames, 2u);
}

TEST(Statistics, a_threads_end_ends_a_frame_that_has_a_block_and_no_other) {
  const by_lifetime_statistics before = statistics();
  on_a_new_thread([] {
    static_cast<void>(temp_allocate(10, 1));
    by_thread_end_frame();
    temp_deallocate(temp_allocate(3000, 1));
  });
  on_a_new_thread([] { deallocate(allocate(10, 1, Lifetime::temp_job), Lifetime::temp_job); });
  const by_lifetime_statistics after = statistics();
  EXPECT_EQ(after.temp.frames - before.temp.frames, 2u);
  EXPECT_EQ(after.temp.frames_by_peak[0] - before.temp.frames_by_peak[0], 1u);
  EXPECT_EQ(after.temp.frames_by_peak[2] - before.temp.frames_by_peak[2], 1u);
}

std::vector<by_lifetime_thread_statistics> of_threads() {
  std::vector<by_lifetime_thread_statistics> threads(by_lifetime_get_thread_statistics(nullptr, 0));
  EXPECT_EQ(by_lifetime_get_thread_statistics(threads.data(), threads.size()), threads.size());
  return threads;
}

TEST(Statistics, each_living_thread_has_its_own) {
  const by_temp_statistics others = statistics().temp;
  static_cast<void>(temp_allocate(1, 1));
  const std::size_t before = of_threads().size();
  std::uint32_t number = 0;
  on_a_new_thread([&] {
    static_cast<void>(temp_allocate(3000, 1));
    by_thread_end_frame();
    static_cast<void>(temp_allocate(std::size_t{8} << 20, 1));  // larger than any region
    by_thread_end_frame();
    const std::vector<by_lifetime_thread_statistics> threads = of_threads();
    EXPECT_EQ(threads.size(), before + 1);
    const auto own = std::find_if(threads.begin(), threads.end(), [](const by_lifetime_thread_statistics& one) {
      return one.temp.overflow_too_large == 1 && one.temp.frames == 2;
    });
    ASSERT_NE(own, threads.end());
    number = own->thread;
    EXPECT_NE(number, 0u);
    EXPECT_EQ(own->temp.frames_by_peak[2], 1u);
    EXPECT_EQ(own->temp.peak_bytes, 3000u);
    EXPECT_EQ(own->temp.peak_demand_bytes, std::size_t{8} << 20);
    EXPECT_EQ(own->temp.overflow_full, 0u);
    EXPECT_GE(own->temp.region_bytes, 3000u);
    EXPECT_EQ(statistics().threads, threads.size());
  });
  // The thread has ended: only the sum has its figures, and the next thread with its memory has another number.
  EXPECT_EQ(of_threads().size(), before);
  EXPECT_EQ(statistics().temp.overflow_too_large, others.overflow_too_large + 1);
  on_a_new_thread([&] {
    static_cast<void>(temp_allocate(1, 1));
    for (const by_lifetime_thread_statistics& one : of_threads()) {
      EXPECT_NE(one.thread, number);
    }
  });
}

TEST(Statistics, no_more_threads_are_written_than_there_is_room_for) {
  static_cast<void>(temp_allocate(1, 1));
  on_a_new_thread([] {
    static_cast<void>(temp_allocate(1, 1));
    by_lifetime_thread_statistics threads[2]{};
    EXPECT_GE(by_lifetime_get_thread_statistics(threads, 1), 2u);
    EXPECT_NE(threads[0].thread, 0u);
    EXPECT_EQ(threads[1].thread, 0u);
  });
}

TEST(Statistics, frames_of_the_program_are_counted) {
  const by_lifetime_statistics before = statistics();
  by_frame_end(0);
  by_frame_end(0);
  EXPECT_EQ(statistics().frames - before.frames, 2u);
}

TEST(Statistics, a_block_with_a_chunk_of_its_own_is_counted) {
  const by_lifetime_statistics before = statistics();
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
  by_lifetime_dump_statistics(fileno(file));
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
