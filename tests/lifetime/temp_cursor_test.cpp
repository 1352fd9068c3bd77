// temp_cursor: where its blocks lie, and what may happen while it is open.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <stdexcept>
#include <vector>

#include "blockyard/lifetime.hpp"
#include "checks/watched.hpp"
#include "own_thread.hpp"
#include "statistics.hpp"

namespace {

using namespace blockyard;

constexpr std::size_t region_bytes = 512 << 10;
constexpr std::size_t piece_bytes = 64 << 10;

// Each test runs on a new thread, with a region of the given size.
class TempCursor : public testing::Test {
 protected:
  TempCursor() { EXPECT_EQ(by_temp_configure(region_bytes, 0), 0); }
  ~TempCursor() override { by_temp_configure(std::size_t{256} << 10, std::size_t{4} << 20); }

  // Where the thread's next block of alignment 1 begins.
  static std::byte* place() {
    auto* const block = static_cast<std::byte*>(temp_allocate(1, 1));
    temp_deallocate(block);
    return block;
  }
};

// A block filled with a pattern, so that a write by another owner is found.
class Marked {
 public:
  Marked(void* block, std::size_t size, unsigned char pattern) : block_(block), size_(size), pattern_(pattern) {
    std::memset(block, pattern, size);
  }
  [[nodiscard]] bool is_whole() const {
    const auto* const content = static_cast<const unsigned char*>(block_);
    for (std::size_t i = 0; i < size_; ++i) {
      if (content[i] != pattern_) {
        return false;
      }
    }
    return true;
  }

 private:
  void* block_;
  std::size_t size_;
  unsigned char pattern_;
};

#define EXPECT_ALL_WHOLE(blocks)           \
  for (const Marked& each : blocks) {      \
    ASSERT_TRUE(each.is_whole()) << &each; \
  }

TEST_F(TempCursor, blocks_lie_in_a_row_each_a_multiple_of_the_alignment) {
  on_a_new_thread([] {
    temp_cursor cursor;
    static_cast<void>(cursor.allocate(1));  // the thread's first block
    std::byte* previous = bytes(cursor.allocate(16));
    for (std::size_t size = 1; size <= 64; ++size) {
      std::byte* const block = bytes(cursor.allocate(size));
      ASSERT_EQ(block, previous + 16);
      static_cast<void>(cursor.allocate(32));
      previous = bytes(cursor.allocate(16));
      ASSERT_EQ(previous, block + (size + 15) / 16 * 16 + 32);
    }
  });
}

TEST_F(TempCursor, blocks_of_four_bytes_at_alignment_four_lie_without_distance) {
  on_a_new_thread([] {
    temp_cursor<4> cursor;
    std::byte* previous = bytes(cursor.allocate(4));
    for (int i = 0; i < 10'000; ++i) {
      std::byte* const block = bytes(cursor.allocate(4));
      ASSERT_EQ(block, previous + 4);
      previous = block;
    }
  });
}

TEST_F(TempCursor, stricter_alignments_are_kept_up_to_16_kib) {
  on_a_new_thread([] {
    temp_cursor<1> cursor;
    for (std::size_t alignment = 1; alignment <= max_alignment; alignment *= 2) {
      static_cast<void>(cursor.allocate(1));
      void* const block = cursor.allocate(3, alignment);
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u) << alignment;
    }
  });
}

TEST_F(TempCursor, what_fails_fails_as_without_a_cursor) {
  on_a_new_thread([] {
    temp_cursor cursor;
    for (int round = 0; round < 2; ++round) {
      for (const std::size_t alignment : {std::size_t{0}, std::size_t{48}, 2 * max_alignment}) {
        errno = 0;
        EXPECT_EQ(cursor.allocate(4, alignment), nullptr);
        EXPECT_EQ(errno, EINVAL);
      }
      for (const std::size_t size : {SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX / 2}) {
        errno = 0;
        EXPECT_EQ(cursor.allocate(size), nullptr);
        EXPECT_EQ(errno, ENOMEM);
      }
      void* const first = cursor.allocate(0);
      void* const second = cursor.allocate(0);
      EXPECT_NE(first, nullptr);
      EXPECT_NE(first, second);
    }
  });
}

TEST_F(TempCursor, its_end_hands_back_what_it_did_not_use) {
  on_a_new_thread([] {
    static_cast<void>(temp_allocate(16, 16));
    std::byte* last = nullptr;
    {
      temp_cursor cursor;
      static_cast<void>(cursor.allocate(100));
      last = bytes(cursor.allocate(32));
    }
    EXPECT_EQ(temp_allocate(16, 16), last + 32);
  });
}

TEST_F(TempCursor, one_that_allocates_nothing_takes_nothing) {
  on_a_new_thread([] {
    std::byte* const before = bytes(temp_allocate(16, 16));
    { const temp_cursor<> cursor; }
    EXPECT_EQ(temp_allocate(16, 16), before + 16);
  });
}

TEST_F(TempCursor, an_exception_hands_back_too) {
  on_a_new_thread([] {
    static_cast<void>(temp_allocate(16, 16));
    std::byte* last = nullptr;
    try {
      temp_cursor cursor;
      last = bytes(cursor.allocate(32));
      throw std::runtime_error("thrown");
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(temp_allocate(16, 16), last + 32);
  });
}

TEST_F(TempCursor, a_region_is_used_to_its_last_byte_and_what_does_not_fit_falls_back) {
  on_a_new_thread([] {
    temp_cursor<1> cursor;
    std::byte* const first = bytes(cursor.allocate(1));
    const by_temp_statistics before = statistics().temp;
    for (std::size_t i = 1; i < region_bytes; ++i) {
      ASSERT_EQ(bytes(cursor.allocate(1)), first + i);
    }
    EXPECT_EQ(statistics().temp.overflow_full, before.overflow_full);
    std::byte* const outside = bytes(cursor.allocate(1));
    EXPECT_FALSE(outside >= first && outside < first + region_bytes);
    EXPECT_EQ(statistics().temp.overflow_full, before.overflow_full + 1);
    EXPECT_NE(cursor.allocate(region_bytes + 1), nullptr);
    EXPECT_EQ(statistics().temp.overflow_too_large, before.overflow_too_large + 1);
  });
}

TEST_F(TempCursor, a_block_that_does_not_fit_leaves_the_piece_to_smaller_ones) {
  on_a_new_thread([] {
    temp_cursor cursor;
    static_cast<void>(cursor.allocate(16));
    std::byte* const before = bytes(cursor.allocate(16));
    EXPECT_NE(cursor.allocate(region_bytes), nullptr);
    EXPECT_EQ(cursor.allocate(16), before + 16);
  });
}

TEST_F(TempCursor, the_region_grows_to_the_byte_that_the_frame_would_have_needed) {
  by_temp_configure(1024, 100'000);
  on_a_new_thread([] {
    {
      temp_cursor cursor;
      for (int i = 0; i < 300; ++i) {
        ASSERT_NE(cursor.allocate(16), nullptr);
      }
    }
    expect_room_for_300_blocks();
  });
}

TEST_F(TempCursor, the_peak_is_what_was_used_and_not_the_piece) {
  on_a_new_thread([] {
    const by_temp_statistics before = statistics().temp;
    {
      temp_cursor cursor;
      static_cast<void>(cursor.allocate(16));
      static_cast<void>(cursor.allocate(16));
      void* const taken_back = cursor.allocate(1600);
      cursor.deallocate(taken_back, 1600);
    }
    by_thread_end_frame();
    EXPECT_EQ(statistics().temp.frames_by_peak[1], before.frames_by_peak[1] + 1) << "from 1 to 2 KiB";
  });
}

TEST_F(TempCursor, other_temp_blocks_lie_elsewhere) {
  on_a_new_thread([] {
    std::vector<Marked> blocks;
    temp_cursor cursor;
    for (unsigned i = 0; i < 2000; ++i) {
      const std::size_t size = 1 + i % 60;
      void* const block = i % 3 == 0 ? temp_allocate(size, 8) : cursor.allocate(size);
      blocks.emplace_back(block, size, static_cast<unsigned char>(i));
    }
    EXPECT_ALL_WHOLE(blocks);
  });
}

TEST_F(TempCursor, cursors_nest) {
  on_a_new_thread([] {
    std::vector<Marked> blocks;
    std::byte* const begin = place();
    {
      temp_cursor outer;
      for (unsigned i = 0; i < 40; ++i) {
        blocks.emplace_back(outer.allocate(100), 100, static_cast<unsigned char>(i));
        temp_cursor inner;
        blocks.emplace_back(inner.allocate(100), 100, static_cast<unsigned char>(i + 100));
        blocks.emplace_back(outer.allocate(100), 100, static_cast<unsigned char>(i + 200));
        blocks.emplace_back(inner.allocate(10), 10, static_cast<unsigned char>(i + 50));
      }
      EXPECT_ALL_WHOLE(blocks);
    }
    by_thread_end_frame();
    EXPECT_EQ(place(), begin);
  });
}

TEST_F(TempCursor, the_newest_block_is_taken_back_where_its_size_is_known) {
  on_a_new_thread([] {
    temp_cursor cursor;
    static_cast<void>(cursor.allocate(16));
    void* const first = cursor.allocate(40);
    void* const second = cursor.allocate(80);
    cursor.deallocate(second, 80);
    cursor.deallocate(first, 40);
    EXPECT_EQ(cursor.allocate(8), first);
  });
}

TEST_F(TempCursor, blocks_may_be_freed_without_it_in_any_order) {
  on_a_new_thread([] {
    std::vector<Marked> kept;
    std::vector<void*> freed;
    temp_cursor cursor;
    std::mt19937 random(5);
    for (unsigned i = 0; i < 3000; ++i) {
      const std::size_t size = 1 + random() % 200;
      void* const block = cursor.allocate(size);
      if (i % 2 == 0) {
        kept.emplace_back(block, size, static_cast<unsigned char>(i));
      } else if (i % 4 == 1) {
        temp_deallocate(block);
      } else {
        temp_deallocate(block, size);
      }
      if (i % 64 == 0) {
        kept.emplace_back(temp_allocate(24, 8), 24, static_cast<unsigned char>(i + 1));
      }
    }
    EXPECT_ALL_WHOLE(kept);
  });
}

TEST_F(TempCursor, resizing_the_last_block_of_a_piece_without_it_lets_nobody_into_the_piece) {
  on_a_new_thread([] {
    temp_cursor cursor;
    static_cast<void>(cursor.allocate(16));  // the thread's first block, before any piece
    void* last = nullptr;
    for (std::size_t i = 0; i < piece_bytes / 32; ++i) {
      last = cursor.allocate(32);
    }
    last = reallocate(last, 32, 20, 16, Lifetime::temp);
    std::vector<Marked> blocks;
    blocks.emplace_back(temp_allocate(8, 4), 8, 1);
    cursor.deallocate(last, 20);
    blocks.emplace_back(cursor.allocate(32), 32, 2);
    EXPECT_ALL_WHOLE(blocks);
  });
}

TEST_F(TempCursor, a_block_outside_of_the_region_is_freed_by_the_cursor) {
  on_a_new_thread([] {
    temp_cursor cursor;
    static_cast<void>(cursor.allocate(16));
    const std::size_t before = used_bytes();
    void* const large = cursor.allocate(1 << 20);
    EXPECT_GT(used_bytes(), before);
    cursor.deallocate(large);
    EXPECT_EQ(used_bytes(), before);
  });
}

TEST_F(TempCursor, a_scope_around_it_gives_everything_back) {
  on_a_new_thread([] {
    std::byte* const before = place();
    {
      const temp_scope scope;
      temp_cursor cursor;
      for (int i = 0; i < 500; ++i) {
        static_cast<void>(cursor.allocate(64));
      }
    }
    EXPECT_EQ(place(), before);
  });
}

TEST_F(TempCursor, a_scope_that_began_later_leaves_its_memory_alone) {
  if (checks::is_watched()) {
    GTEST_SKIP() << "NOT RUN: in a watched process blocks that a cursor gives inside of a scope go with it";
  }
  on_a_new_thread([] {
    std::vector<Marked> blocks;
    temp_cursor cursor;
    for (unsigned i = 0; i < 200; ++i) {
      {
        const temp_scope scope;
        static_cast<void>(temp_allocate(50, 8));
        blocks.emplace_back(cursor.allocate(100), 100, static_cast<unsigned char>(i));
        static_cast<void>(temp_allocate(50, 8));
      }
      blocks.emplace_back(temp_allocate(30, 8), 30, static_cast<unsigned char>(i + 1));
      blocks.emplace_back(cursor.allocate(10), 10, static_cast<unsigned char>(i + 2));
    }
    EXPECT_ALL_WHOLE(blocks);
  });
}

TEST_F(TempCursor, scopes_with_cursors_inside_of_another_cursor_do_not_fill_the_region) {
  on_a_new_thread([] {
    const std::uint64_t full = statistics().temp.overflow_full;
    temp_cursor outer;
    static_cast<void>(outer.allocate(16));
    static_cast<void>(outer.allocate(16));
    for (int i = 0; i < 1000; ++i) {
      const temp_scope scope;
      temp_cursor inner;
      static_cast<void>(inner.allocate(piece_bytes / 2));
    }
    EXPECT_EQ(statistics().temp.overflow_full, full);
  });
}

TEST_F(TempCursor, an_outer_cursor_keeps_its_memory_when_an_inner_one_goes_on_behind_it) {
  on_a_new_thread([] {
    std::vector<Marked> blocks;
    temp_cursor outer;
    static_cast<void>(outer.allocate(16));
    blocks.emplace_back(outer.allocate(16), 16, 1);
    const temp_scope scope;
    {
      temp_cursor inner;
      blocks.emplace_back(inner.allocate(16), 16, 2);
      blocks.emplace_back(outer.allocate(piece_bytes), piece_bytes, 3);  // behind the inner one's piece
      blocks.emplace_back(inner.allocate(piece_bytes), piece_bytes, 4);  // and behind that
      EXPECT_ALL_WHOLE(blocks);
    }
    blocks.pop_back();
    by_temp_rewind(by_temp_mark_now());
    blocks.emplace_back(temp_allocate(2 * piece_bytes, 16), 2 * piece_bytes, 5);
    blocks.emplace_back(outer.allocate(64), 64, 6);
    EXPECT_ALL_WHOLE(blocks);
  });
}

TEST_F(TempCursor, one_may_be_open_while_the_frame_ends) {
  on_a_new_thread([] {
    temp_cursor cursor;
    for (unsigned frame = 0; frame < 20; ++frame) {
      std::vector<Marked> blocks;
      for (unsigned i = 0; i < 50; ++i) {
        blocks.emplace_back(cursor.allocate(40), 40, static_cast<unsigned char>(frame + i));
        blocks.emplace_back(temp_allocate(40, 8), 40, static_cast<unsigned char>(frame + i + 100));
      }
      EXPECT_ALL_WHOLE(blocks);
      if (frame == 10) {
        by_temp_configure(2 * region_bytes, 0);  // obeyed only when no cursor is open
      }
      by_thread_end_frame();
    }
  });
}

TEST_F(TempCursor, cursors_may_end_in_any_order) {
  on_a_new_thread([] {
    std::mt19937 random(3);
    std::vector<std::optional<temp_cursor<>>> cursors(12);
    std::byte* const begin = place();
    for (int frame = 0; frame < 20; ++frame) {
      std::vector<Marked> blocks;
      std::vector<by_temp_mark> marks;
      for (unsigned i = 0; i < 400; ++i) {
        std::optional<temp_cursor<>>& cursor = cursors[random() % cursors.size()];
        if (!cursor) {
          cursor.emplace();
        } else if (random() % 4 == 0) {
          cursor.reset();
          continue;
        }
        const std::size_t size = 1 + random() % 90;
        blocks.emplace_back(cursor->allocate(size), size, static_cast<unsigned char>(i));
        if (random() % 8 == 0) {
          const temp_scope scope;
          std::memset(temp_allocate(200, 8), 0, 200);
        }
      }
      EXPECT_ALL_WHOLE(blocks);
      if (frame % 2 == 0) {
        for (auto& cursor : cursors) {
          cursor.reset();
        }
        by_thread_end_frame();
        EXPECT_EQ(place(), begin);
      } else {
        by_thread_end_frame();
      }
    }
    cursors.clear();
  });
}

TEST_F(TempCursor, one_that_outlives_its_thread_does_no_harm) {
  std::optional<temp_cursor<>> cursor;
  on_a_new_thread([&] {
    cursor.emplace();
    static_cast<void>(cursor->allocate(16));
    static_cast<void>(cursor->allocate(16));
  });
  cursor.reset();
  on_a_new_thread([] { EXPECT_NE(temp_allocate(16, 16), nullptr); });
}

}  // namespace
