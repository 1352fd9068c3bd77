// Temp: where blocks lie, when they end, and what happens when the region is full.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "blockyard/lifetime.hpp"
#include "checks/watched.hpp"
#include "own_thread.hpp"
#include "statistics.hpp"

namespace {

using namespace blockyard;

by_temp_statistics temp_statistics() { return statistics().temp; }

// Regions of the given size for the threads of one test.
class Region {
 public:
  Region(std::size_t region, std::size_t limit) { EXPECT_EQ(by_temp_configure(region, limit), 0); }
  ~Region() { by_temp_configure(std::size_t{256} << 10, std::size_t{4} << 20); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
};

TEST(Temp, blocks_of_four_bytes_at_alignment_four_lie_without_distance) {
  on_a_new_thread([] {
    std::byte* previous = bytes(temp_allocate(4, 4));
    for (int i = 0; i < 1000; ++i) {
      std::byte* const block = bytes(temp_allocate(4, 4));
      ASSERT_EQ(block - (previous + 4), 0);
      previous = block;
    }
  });
}

TEST(Temp, the_frames_end_gives_the_whole_region_back) {
  on_a_new_thread([] {
    void* const first = temp_allocate(100, 16);
    static_cast<void>(temp_allocate(5000, 16));
    by_thread_end_frame();
    EXPECT_EQ(temp_allocate(100, 16), first);
  });
}

TEST(Temp, the_newest_block_is_taken_back_and_another_is_not) {
  on_a_new_thread([] {
    void* const first = temp_allocate(32, 16);
    void* const second = temp_allocate(32, 16);
    temp_deallocate(first);
    void* const third = temp_allocate(32, 16);
    EXPECT_EQ(bytes(third), bytes(second) + 32);
    temp_deallocate(third);
    EXPECT_EQ(temp_allocate(32, 16), third);
  });
}

TEST(Temp, freeing_nothing_does_nothing_whether_there_is_a_newest_block_or_not) {
  on_a_new_thread([] {
    temp_deallocate(nullptr);
    temp_deallocate(nullptr, 0);
    void* const first = temp_allocate(32, 16);
    temp_deallocate(nullptr);
    EXPECT_EQ(bytes(temp_allocate(32, 16)), bytes(first) + 32);
    by_thread_end_frame();
    temp_deallocate(nullptr);
    temp_deallocate(nullptr, 0);
    EXPECT_EQ(temp_allocate(32, 16), first);
    {
      const temp_scope scope;
      static_cast<void>(temp_allocate(32, 16));
    }
    temp_deallocate(nullptr);
    EXPECT_EQ(bytes(temp_allocate(32, 16)), bytes(first) + 32);
  });
}

TEST(Temp, memory_is_handed_out_again_as_it_was_left) {
  if (checks::is_watched()) {
    GTEST_SKIP() << "NOT RUN: a watched process fills fresh memory";
  }
  on_a_new_thread([] {
    std::memset(temp_allocate(100, 16), 0x5a, 100);
    by_thread_end_frame();
    const std::byte* const block = bytes(temp_allocate(100, 16));
    EXPECT_EQ(block[0], std::byte{0x5a});
    EXPECT_EQ(block[99], std::byte{0x5a});
  });
}

TEST(Temp, a_caller_who_knows_the_sizes_takes_back_every_block_in_reverse_order) {
  on_a_new_thread([] {
    void* const first = temp_allocate(32, 16);
    void* const second = temp_allocate(48, 16);
    void* const third = temp_allocate(16, 16);
    temp_deallocate(third, 16);
    temp_deallocate(second, 48);
    temp_deallocate(first, 32);
    EXPECT_EQ(temp_allocate(32, 16), first);
  });
}

TEST(Temp, a_caller_who_knows_the_sizes_takes_back_what_lies_without_gaps) {
  on_a_new_thread([] {
    void* const first = temp_allocate(1, 1);
    for (std::size_t alignment = 1; alignment <= 16; alignment *= 2) {
      std::vector<void*> blocks;
      for (std::size_t i = 1; i <= 300; ++i) {
        blocks.push_back(temp_allocate((1 + i % 10) * alignment, alignment));
      }
      for (std::size_t i = 300; i > 1; --i) {
        temp_deallocate(blocks[i - 1], (1 + i % 10) * alignment);
      }
      EXPECT_EQ(temp_allocate(alignment, alignment), bytes(blocks[0]) + 2 * alignment);
      by_thread_end_frame();
      EXPECT_EQ(temp_allocate(1, 1), first);
    }
  });
}

TEST(Temp, of_small_blocks_in_a_row_only_the_newest_is_taken_back_by_its_size) {
  on_a_new_thread([] {
    std::byte* const first = bytes(temp_allocate(4, 4));
    std::byte* const second = bytes(temp_allocate(12, 4));
    temp_deallocate(first, 4);
    EXPECT_EQ(bytes(temp_allocate(4, 4)), second + 12);
  });
}

TEST(Temp, the_newest_block_is_taken_back_whatever_its_size) {
  on_a_new_thread([] {
    static_cast<void>(temp_allocate(16, 16));
    for (std::size_t size = 0; size < 100; ++size) {
      void* const block = temp_allocate(size, 16);
      temp_deallocate(block, size);
      ASSERT_EQ(temp_allocate(size, 16), block);
      temp_deallocate(block);
    }
  });
}

TEST(Temp, the_last_bytes_of_a_region_are_taken_back_by_their_size) {
  const Region region(4096 + 5, 0);
  on_a_new_thread([] {
    static_cast<void>(temp_allocate(4096, 16));
    void* const last = temp_allocate(5, 16);
    temp_deallocate(last, 5);
    EXPECT_EQ(temp_allocate(5, 16), last);
  });
}

TEST(Temp, a_scope_gives_back_what_is_younger_and_nothing_else) {
  on_a_new_thread([] {
    char* const kept = static_cast<char*>(temp_allocate(16, 16));
    std::strcpy(kept, "kept");
    void* inside = nullptr;
    {
      const temp_scope scope;
      inside = temp_allocate(16, 16);
      {
        const temp_scope nested;
        static_cast<void>(temp_allocate(1000, 16));
      }
    }
    EXPECT_EQ(temp_allocate(16, 16), inside);
    EXPECT_STREQ(kept, "kept");
  });
}

TEST(Temp, a_scope_around_the_first_block_of_a_thread_works) {
  on_a_new_thread([] {
    void* first = nullptr;
    {
      const temp_scope scope;
      first = temp_allocate(16, 16);
    }
    EXPECT_EQ(temp_allocate(16, 16), first);
  });
}

TEST(Temp, a_scope_whose_frame_has_ended_does_nothing) {
  on_a_new_thread([] {
    void* later = nullptr;
    {
      const temp_scope scope;
      static_cast<void>(temp_allocate(64, 16));
      by_thread_end_frame();
      later = temp_allocate(64, 16);
    }
    EXPECT_NE(temp_allocate(64, 16), later);
  });
}

TEST(Temp, a_mark_beyond_the_region_does_nothing) {
  on_a_new_thread([] {
    void* const block = temp_allocate(64, 8);
    by_temp_mark mark = by_temp_mark_now();
    for (const std::size_t position : {mark.position + 1, SIZE_MAX / 2, SIZE_MAX - 64, SIZE_MAX}) {
      mark.position = position;
      by_temp_rewind(mark);
    }
    EXPECT_GE(static_cast<char*>(temp_allocate(64, 8)), static_cast<char*>(block) + 64);
  });
}

TEST(Temp, a_region_is_used_to_its_last_byte_and_the_next_block_falls_back) {
  const Region region(4096, 0);
  on_a_new_thread([] {
    const by_temp_statistics before = temp_statistics();
    std::byte* const first = bytes(temp_allocate(4000, 16));
    std::byte* const last = bytes(temp_allocate(96, 1));
    EXPECT_EQ(last, first + 4000);
    EXPECT_EQ(temp_statistics().overflow_full, before.overflow_full);
    std::byte* const outside = bytes(temp_allocate(1, 1));
    ASSERT_NE(outside, nullptr);
    EXPECT_FALSE(outside >= first && outside < first + 4096);
    EXPECT_EQ(temp_statistics().overflow_full, before.overflow_full + 1);
  });
}

// Of several calls in a row, compilers drop stores that a later call repeats (temp.hpp). The slow path must find the
// same state as if none were dropped, whichever of the calls does not fit the region.
struct Wanted {
  std::size_t size;
  std::size_t alignment;
};

// Where a block lies: its distance from the region's begin, or a number for blocks elsewhere and for none.
constexpr std::ptrdiff_t elsewhere = -1;
constexpr std::ptrdiff_t no_block = -2;
constexpr std::size_t small_region = 4096;

// A model of a region as lifetime.h describes it.
class RegionModel {
 public:
  std::ptrdiff_t allocate(const Wanted& wanted) {
    const auto [size, alignment] = wanted;
    if ((alignment & (alignment - 1)) != 0 || size > PTRDIFF_MAX) {
      return no_block;
    }
    const std::size_t begin = (place_ + alignment - 1) / alignment * alignment;
    const std::size_t bytes = std::max<std::size_t>(size, 1);
    if (begin > small_region || bytes > small_region - begin) {
      return elsewhere;
    }
    const std::size_t taken = alignment > 16 ? bytes : (bytes + alignment - 1) / alignment * alignment;
    place_ = std::min(begin + taken, small_region);
    newest_ = begin;
    return static_cast<std::ptrdiff_t>(begin);
  }
  void free(std::ptrdiff_t place) {
    if (place >= 0 && static_cast<std::size_t>(place) == newest_) {
      place_ = newest_;
    }
  }

 private:
  std::size_t place_ = 0;
  std::size_t newest_ = 0;
};

TEST(Temp, calls_in_a_row_find_and_leave_what_single_calls_do) {
  const Region region(small_region, small_region);
  const Wanted kinds[] = {{16, 16}, {24, 8},        {4, 4}, {1, 1},   {40, 64},
                          {0, 16},  {SIZE_MAX, 16}, {8, 3}, {48, 16}, {200, 32}};
  constexpr std::size_t count = std::size(kinds);
  for (std::size_t left = 0; left <= 240; left += 8) {
    for (std::size_t kind = 0; kind < count * count; ++kind) {
      const Wanted wanted[] = {kinds[kind % count], {24, 16}, kinds[kind / count], {12, 4}};
      const std::size_t freed = (left / 8 + kind) % 4;
      std::vector<std::ptrdiff_t> found;
      on_a_new_thread([&] {
        std::byte* const first = bytes(temp_allocate(small_region - left, 1));
        void* blocks[5];
        const auto note = [&](std::size_t blocks_to_note) {
          for (std::size_t i = 0; i < blocks_to_note; ++i) {
            const std::ptrdiff_t distance = bytes(blocks[i]) - first;
            const bool inside = distance >= 0 && distance < static_cast<std::ptrdiff_t>(small_region);
            found.push_back(blocks[i] == nullptr ? no_block : inside ? distance : elsewhere);
          }
        };
        blocks[0] = temp_allocate(wanted[0].size, wanted[0].alignment);
        blocks[1] = temp_allocate(24);
        blocks[2] = temp_allocate(wanted[2].size, wanted[2].alignment);
        blocks[3] = temp_allocate(12, 4);
        note(4);
        temp_deallocate(blocks[freed]);
        blocks[0] = temp_allocate(1, 1);
        blocks[1] = temp_allocate(wanted[0].size, wanted[0].alignment);
        blocks[2] = temp_allocate(24);
        blocks[3] = temp_allocate(wanted[2].size, wanted[2].alignment);
        blocks[4] = temp_allocate(12, 4);
        note(5);
        by_thread_end_frame();
      });
      RegionModel model;
      std::vector<std::ptrdiff_t> expected;
      static_cast<void>(model.allocate({small_region - left, 1}));
      for (const Wanted& one : wanted) {
        expected.push_back(model.allocate(one));
      }
      model.free(expected[freed]);
      for (const Wanted& one : {Wanted{1, 1}, wanted[0], wanted[1], wanted[2], wanted[3]}) {
        expected.push_back(model.allocate(one));
      }
      ASSERT_EQ(found, expected) << left << " bytes left, kinds " << kind % count << " and " << kind / count
                                 << ", block " << freed << " freed";
    }
  }
}

TEST(Temp, blocks_larger_than_the_region_are_counted_apart) {
  const Region region(4096, 0);
  on_a_new_thread([] {
    const by_temp_statistics before = temp_statistics();
    EXPECT_NE(temp_allocate(4097, 1), nullptr);
    EXPECT_EQ(temp_statistics().overflow_too_large, before.overflow_too_large + 1);
    EXPECT_EQ(temp_statistics().overflow_full, before.overflow_full);
  });
}

TEST(Temp, a_block_outside_of_the_region_goes_with_the_frame_or_by_deallocate) {
  const Region region(64, 0);
  on_a_new_thread([] {
    static_cast<void>(temp_allocate(64, 1));
    const std::size_t before = used_bytes();
    void* const large = temp_allocate(1 << 20, 16);
    temp_deallocate(large);
    EXPECT_EQ(used_bytes(), before);
    static_cast<void>(temp_allocate(1 << 20, 16));
    by_thread_end_frame();
    EXPECT_EQ(used_bytes(), before);
  });
}

TEST(Temp, a_scope_frees_younger_blocks_outside_of_the_region_and_keeps_older_ones) {
  const Region region(64, 0);
  on_a_new_thread([] {
    static_cast<void>(temp_allocate(64, 1));
    char* const older = static_cast<char*>(temp_allocate(100'000, 16));
    std::strcpy(older, "older");
    const std::size_t before = used_bytes();
    {
      const temp_scope scope;
      for (int i = 0; i < 10; ++i) {
        static_cast<void>(temp_allocate(100'000, 16));
      }
    }
    EXPECT_EQ(used_bytes(), before);
    EXPECT_STREQ(older, "older");
  });
}

TEST(Temp, the_region_grows_to_the_byte_that_the_frame_would_have_needed) {
  const Region region(1024, 100'000);
  on_a_new_thread([] {
    for (int i = 0; i < 300; ++i) {
      ASSERT_NE(temp_allocate(16, 16), nullptr);
    }
    expect_room_for_300_blocks();
  });
}

TEST(Temp, what_scopes_and_frees_gave_back_is_not_needed_twice) {
  const Region region(1024, 100'000);
  on_a_new_thread([] {
    for (int i = 0; i < 50; ++i) {
      const temp_scope scope;
      static_cast<void>(temp_allocate(1024, 16));
      static_cast<void>(temp_allocate(2000, 16));  // does not fit
    }
    for (int i = 0; i < 50; ++i) {
      void* const block = temp_allocate(3008, 16);
      temp_deallocate(block);
    }
    by_thread_end_frame();
    std::byte* const first = bytes(temp_allocate(1024, 16));
    EXPECT_EQ(bytes(temp_allocate(2000, 16)), first + 1024) << "the region is smaller than 1024 + 2000 bytes";
    expect_the_region_ends(first, 3024);
  });
}

TEST(Temp, what_did_not_fit_and_was_freed_is_not_needed_twice_where_scopes_begin_meanwhile) {
  const Region region(1024, 100'000);
  on_a_new_thread([] {
    for (int i = 0; i < 50; ++i) {
      void* const outside = temp_allocate(2000, 16);
      {
        const temp_scope scope;
        void* const younger = temp_allocate(2000, 16);
        temp_deallocate(younger);
      }
      temp_deallocate(outside);
    }
    by_thread_end_frame();
    std::byte* const first = bytes(temp_allocate(4000, 16));
    expect_the_region_ends(first, 4000);
  });
}

TEST(Temp, a_scope_frees_what_did_not_fit_after_it_began_where_slots_were_used_again) {
  const Region region(64, 0);
  on_a_new_thread([] {
    static_cast<void>(temp_allocate(64, 1));
    const std::size_t before = used_bytes();
    void* const older = temp_allocate(100'000, 16);
    {
      const temp_scope scope;
      temp_deallocate(older);
      static_cast<void>(temp_allocate(100'000, 16));
      const temp_scope inner;
      static_cast<void>(temp_allocate(100'000, 16));
    }
    EXPECT_EQ(used_bytes(), before);
  });
}

TEST(Temp, a_scope_from_before_a_threads_first_block_and_the_end_of_its_frame_does_nothing) {
  on_a_new_thread([] {
    char* block = nullptr;
    {
      const temp_scope scope;
      by_thread_end_frame();
      block = static_cast<char*>(temp_allocate(100, 16));
      std::strcpy(block, "stays");
    }
    EXPECT_NE(temp_allocate(100, 16), block);
    EXPECT_STREQ(block, "stays");
  });
}

TEST(Temp, what_did_not_fit_is_remembered_when_the_region_has_become_empty_again) {
  const Region region(1024, 100'000);
  on_a_new_thread([] {
    void* const block = temp_allocate(1024, 16);
    void* const outside = temp_allocate(512, 16);
    temp_deallocate(block, 1024);
    temp_deallocate(outside);
    by_thread_end_frame();
    std::byte* const first = bytes(temp_allocate(1024, 16));
    EXPECT_EQ(bytes(temp_allocate(512, 16)), first + 1024);
    std::byte* const beyond = bytes(temp_allocate(1, 1));
    EXPECT_FALSE(beyond >= first && beyond <= first + 1536);
  });
}

TEST(Temp, the_region_never_grows_beyond_its_limit) {
  const Region region(1024, 2048);
  on_a_new_thread([] {
    for (int frame = 0; frame < 3; ++frame) {
      static_cast<void>(temp_allocate(1 << 20, 16));
      by_thread_end_frame();
    }
    std::byte* const first = bytes(temp_allocate(2048, 1));
    std::byte* const next = bytes(temp_allocate(1, 1));
    EXPECT_TRUE(next < first || next >= first + 2048);
  });
}

TEST(Temp, new_settings_reach_a_running_thread_at_its_frames_end) {
  on_a_new_thread([] {
    static_cast<void>(temp_allocate(16, 16));
    const Region region(64, 0);
    by_thread_end_frame();
    std::byte* const first = bytes(temp_allocate(64, 1));
    std::byte* const next = bytes(temp_allocate(1, 1));
    EXPECT_TRUE(next < first || next >= first + 64);
  });
}

TEST(Temp, settings_out_of_range_are_refused) {
  errno = 0;
  EXPECT_EQ(by_temp_configure(63, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(by_temp_configure((std::size_t{1} << 30) + 1, 0), -1);
}

TEST(Temp, the_newest_block_grows_where_it_is) {
  on_a_new_thread([] {
    char* const block = static_cast<char*>(temp_allocate(8, 8));
    std::strcpy(block, "grows");
    char* const larger = static_cast<char*>(reallocate(block, 8, 800, 8, Lifetime::temp));
    if (!checks::is_watched()) {
      EXPECT_EQ(larger, block);
    }
    EXPECT_STREQ(larger, "grows");
  });
}

TEST(Temp, a_block_that_is_not_the_newest_moves_with_its_contents) {
  on_a_new_thread([] {
    char* const block = static_cast<char*>(temp_allocate(8, 8));
    std::strcpy(block, "moves");
    static_cast<void>(temp_allocate(8, 8));
    char* const larger = static_cast<char*>(reallocate(block, 8, 800, 8, Lifetime::temp));
    EXPECT_NE(larger, block);
    EXPECT_STREQ(larger, "moves");
  });
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Bytes of the process's address space.
long address_space() {
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4096;
}

TEST(Temp, a_thread_that_never_ends_a_frame_takes_no_more_memory_than_its_blocks) {
  const Region region(64, 0);
  on_a_new_thread([] {
    constexpr std::size_t living = 100;
    std::vector<char*> blocks(living);
    long before = 0;
    for (std::size_t i = 0; i < 500'000; ++i) {
      char*& oldest = blocks[i % living];  // always some younger one lives
      if (oldest != nullptr) {
        ASSERT_EQ(oldest[99], static_cast<char>((i - living) % 127));
        temp_deallocate(oldest);
      }
      oldest = static_cast<char*>(temp_allocate(100, 16));
      oldest[99] = static_cast<char>(i % 127);
      before = i == 10'000 ? address_space() : before;
    }
    EXPECT_LT(address_space() - before, 1 << 20);
  });
}

TEST(Temp, a_scope_frees_the_right_blocks_after_slots_of_freed_ones_were_closed) {
  const Region region(64, 0);
  on_a_new_thread([] {
    char* const oldest = static_cast<char*>(temp_allocate(100, 16));
    std::strcpy(oldest, "older");
    std::size_t before = 0;
    {
      char* previous = static_cast<char*>(temp_allocate(100, 16));
      before = used_bytes();
      const temp_scope scope;
      for (int i = 0; i < 10'000; ++i) {
        char* const next = static_cast<char*>(temp_allocate(100'000, 16));
        temp_deallocate(previous);
        previous = next;
      }
    }
    EXPECT_EQ(used_bytes(), before);
    EXPECT_STREQ(oldest, "older");
    temp_deallocate(oldest);
  });
}
#endif

TEST(Temp, a_thread_that_never_ends_a_frame_keeps_every_block) {
  const Region region(256, 0);
  on_a_new_thread([] {
    std::vector<unsigned*> blocks;
    for (unsigned i = 0; i < 20'000; ++i) {
      blocks.push_back(static_cast<unsigned*>(temp_allocate(sizeof(unsigned) * 4, 4)));
      ASSERT_NE(blocks.back(), nullptr);
      *blocks.back() = i;
    }
    for (unsigned i = 0; i < 20'000; ++i) {
      ASSERT_EQ(*blocks[i], i);
    }
  });
}

}  // namespace
