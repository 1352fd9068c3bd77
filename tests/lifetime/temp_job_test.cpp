// Temp job: where blocks lie, frees on any thread, reuse of chunks.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "blockyard/lifetime.hpp"
#include "checks/watched.hpp"
#include "own_thread.hpp"
#include "statistics.hpp"

namespace {

using namespace blockyard;

void* job(std::size_t size, std::size_t alignment = 16) { return allocate(size, alignment, Lifetime::temp_job); }
void free_job(void* block) { deallocate(block, Lifetime::temp_job); }

std::vector<void*> jobs(std::size_t count, std::size_t size) {
  std::vector<void*> blocks(count);
  for (void*& block : blocks) {
    block = job(size);
  }
  return blocks;
}

void free_jobs(const std::vector<void*>& blocks) {
  for (void* const block : blocks) {
    free_job(block);
  }
}

TEST(TempJob, blocks_of_four_bytes_at_alignment_four_lie_at_most_twelve_bytes_apart) {
  if (checks::is_watched()) {
    GTEST_SKIP() << "SKIPPED: this process has checks, where a block's size stands before it, too";
  }
  on_a_new_thread([] {
    std::byte* previous = static_cast<std::byte*>(job(4, 4));
    std::vector<void*> blocks{previous};
    for (int i = 0; i < 1000; ++i) {
      std::byte* const block = static_cast<std::byte*>(job(4, 4));
      EXPECT_LE(block - (previous + 4), 12);
      EXPECT_GE(block - (previous + 4), 0);
      previous = block;
      blocks.push_back(block);
    }
    free_jobs(blocks);
  });
}

TEST(TempJob, a_chunk_is_used_again_when_its_last_block_is_freed) {
  on_a_new_thread([] {
    for (int round = 0; round < 3; ++round) {
      free_jobs(jobs(10'000, 100));
    }
    const by_lifetime_statistics settled = statistics();
    for (int round = 0; round < 20; ++round) {
      free_jobs(jobs(10'000, 100));
    }
    const by_lifetime_statistics later = statistics();
    // A round may begin anywhere in a chunk, and so need one chunk more than those before it.
    EXPECT_LE(later.temp_job_chunk_bytes, settled.temp_job_chunk_bytes + (std::size_t{64} << 10));
  });
}

TEST(TempJob, a_thread_keeps_its_newest_chunks_and_uses_them_again_when_another_thread_emptied_them) {
  on_a_new_thread([] {
    std::vector<void*> blocks;
    const auto fill = [&] {
      while (blocks.size() < 2000) {  // three chunks and a half
        blocks.push_back(job(100));
      }
    };
    fill();
    const std::size_t filled = used_bytes();
    for (int round = 0; round < 50; ++round) {
      std::thread([&] { free_jobs(blocks); }).join();
      blocks.clear();
      fill();
    }
    EXPECT_LE(used_bytes(), filled + (std::size_t{64} << 10)) << "chunks were left behind";
    free_jobs(blocks);
  });
}

TEST(TempJob, a_thread_that_ends_leaves_no_chunk_in_use) {
  const std::size_t before = used_bytes();
  on_a_new_thread([] { free_jobs(jobs(5000, 100)); });
  EXPECT_EQ(used_bytes(), before);
}

TEST(TempJob, blocks_freed_on_another_thread_free_their_chunk) {
  const std::size_t before = used_bytes();
  std::vector<void*> blocks;
  on_a_new_thread([&] {
    for (int i = 0; i < 10'000; ++i) {
      blocks.push_back(job(64));
    }
  });
  on_a_new_thread([&] { free_jobs(blocks); });
  EXPECT_EQ(used_bytes(), before);
}

TEST(TempJob, one_living_block_keeps_its_contents_while_everything_around_it_comes_and_goes) {
  char* const kept = static_cast<char*>(job(32));
  std::strcpy(kept, "still here");
  for (int i = 0; i < 100'000; ++i) {
    char* const other = static_cast<char*>(job(48));
    std::memset(other, 'x', 48);
    free_job(other);
  }
  EXPECT_STREQ(kept, "still here");
  free_job(kept);
}

TEST(TempJob, a_block_that_grows_keeps_its_contents) {
  char* block = static_cast<char*>(job(8, 8));
  std::strcpy(block, "content");
  for (std::size_t size = 16; size <= (std::size_t{1} << 20); size *= 2) {
    block = static_cast<char*>(reallocate(block, size / 2, size, 8, Lifetime::temp_job));
    ASSERT_STREQ(block, "content");
  }
  free_job(block);
}

TEST(TempJob, the_newest_block_grows_where_it_is_once_it_was_resized) {
  if (checks::is_watched()) {
    GTEST_SKIP() << "NOT RUN: in a watched process every resized block moves";
  }
  on_a_new_thread([] {
    void* const moved = reallocate(job(40, 16), 40, 100, 16, Lifetime::temp_job);
    void* const grown = reallocate(moved, 100, 250, 16, Lifetime::temp_job);
    EXPECT_EQ(grown, moved);
    char* const next = static_cast<char*>(job(4, 4));
    EXPECT_GE(next - 8, static_cast<char*>(grown) + 250);
    free_job(next);
    free_job(grown);
  });
}

TEST(TempJob, chunks_of_resized_and_strictly_aligned_blocks_are_free_when_their_blocks_are) {
  const std::size_t before = used_bytes();
  std::vector<void*> outside;
  on_a_new_thread([&] {
    std::vector<void*> here;
    for (std::size_t i = 0; i < 5000; ++i) {
      const std::size_t size = i * 37 % 16'500;  // up to blocks with a chunk of their own
      const std::size_t alignment = std::size_t{1} << (i % 15);
      void* block = job(size, alignment);
      if (i % 3 == 0) {
        block = reallocate(block, size, size / 2 + 100, alignment, Lifetime::temp_job);
        block = reallocate(block, size / 2 + 100, size, alignment, Lifetime::temp_job);
      }
      (i % 2 == 0 ? here : outside).push_back(block);
      if (i % 7 == 0) {
        free_job(here.back());
        here.pop_back();
      }
    }
    free_jobs(here);
  });
  free_jobs(outside);
  EXPECT_EQ(used_bytes(), before);
}

TEST(TempJob, trim_gives_free_memory_back_and_leaves_live_blocks_alone) {
  char* const kept = static_cast<char*>(job(32));
  std::strcpy(kept, "kept");
  void* const large = job(1 << 20);
  std::memset(large, 1, 1 << 20);
  free_job(large);
  EXPECT_GE(by_temp_job_trim(), std::size_t{1} << 20);
  EXPECT_STREQ(kept, "kept");
  void* const again = job(1 << 20);
  std::memset(again, 1, 1 << 20);
  free_job(again);
  free_job(kept);
}

}  // namespace
