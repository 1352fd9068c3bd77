// What the checked build says of each way to break malloc's contract. Every case runs in a process of its own, which
// the heap ends with a sentence, the stack that did it, and the stacks that it remembers.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/bound.hpp"
#include "blockyard/heap.h"
#include "pages/injected_failure.hpp"

// Names that the reports must show: not inlined, with symbols that the loader knows.
#define BY_SHOWN extern "C" [[gnu::noinline, gnu::visibility("default")]]

BY_SHOWN void* where_it_is_allocated(std::size_t size) {
  void* volatile block = by_malloc(size);
  return block;
}
BY_SHOWN void where_it_is_freed(void* block) {
  by_free(block);
  asm volatile("");
}
BY_SHOWN void where_it_is_misused(void* block) {
  by_free(block);
  asm volatile("");
}
// Named as functions of the library are.
BY_SHOWN void by_age(void* block) {
  by_free(block);
  asm volatile("");
}

namespace {

unsigned char* bytes_of(void* block) { return static_cast<unsigned char*>(block); }

// Lets a freed block's time in quarantine end.
void free_many_others() {
  for (int i = 0; i < 3000; ++i) {
    by_free(by_malloc(64));
  }
}

#if __has_include(<sys/wait.h>)
#define EXPECT_REPORT EXPECT_DEATH
#else
// GoogleTest's own expressions know no line ends, and a report has files and offsets in place of functions.
class Says : public testing::MatcherInterface<const std::string&> {
 public:
  explicit Says(const std::string& parts) : parts_(parts) {}
  bool MatchAndExplain(const std::string& said, testing::MatchResultListener*) const override {
    std::size_t at = 0;
    for (std::size_t from = 0; from < parts_.size() && at != std::string::npos;) {
      const std::size_t end = std::min(parts_.find(".*", from), parts_.size());
      const std::string part = parts_.substr(from, end - from);
      at = said.find(part.rfind("where_it_is_", 0) == 0 ? ".exe+0x" : part, at);
      from = end + 2;
    }
    return at != std::string::npos;
  }
  void DescribeTo(std::ostream* to) const override { *to << parts_; }

 private:
  const std::string parts_;
};
#define EXPECT_REPORT(statement, parts) EXPECT_DEATH(statement, testing::Matcher<const std::string&>(new Says(parts)))
#endif

class CheckedHeapDeathTest : public testing::Test {
 protected:
  CheckedHeapDeathTest() { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(CheckedHeapDeathTest, a_second_free_is_reported_with_all_three_stacks) {
  for (const std::size_t size : {24u, 3'000u, 100'000u, 5'000'000u}) {
    EXPECT_REPORT(
        {
          void* const block = where_it_is_allocated(size);
          where_it_is_freed(block);
          where_it_is_misused(block);
        },
        "free of a block that was freed already.*where_it_is_misused.*allocated by.*where_it_is_allocated"
        ".*freed by.*where_it_is_freed");
  }
}

TEST_F(CheckedHeapDeathTest, a_foreign_free_is_reported_with_the_stack_that_did_it) {
  static long foreign[4];
  EXPECT_REPORT(where_it_is_misused(foreign), "free of a pointer that this heap never handed out.*where_it_is_misused");
}

#if __has_include(<sys/wait.h>)
TEST_F(CheckedHeapDeathTest, stacks_begin_with_the_programs_own_function_whatever_its_name) {
  EXPECT_REPORT(
      {
        void* const block = where_it_is_allocated(24);
        where_it_is_freed(block);
        by_age(block);
      },
      "by thread [0-9]+, at\n    by_age.*allocated by thread [0-9]+, at\n    where_it_is_allocated"
      ".*freed by thread [0-9]+, at\n    where_it_is_freed");
}
#endif

TEST_F(CheckedHeapDeathTest, a_free_of_memory_of_the_heap_that_is_no_block_is_reported) {
  EXPECT_REPORT(where_it_is_misused(bytes_of(where_it_is_allocated(64)) + (std::size_t{4} << 30)),
                "free of a pointer that this heap never handed out.*where_it_is_misused");
}

TEST_F(CheckedHeapDeathTest, an_interior_free_is_reported_with_the_block_it_points_into) {
  for (const std::size_t offset : {1u, 16u, 900u}) {
    EXPECT_REPORT(
        where_it_is_misused(bytes_of(where_it_is_allocated(1'000)) + offset),
        "free of a pointer into the middle of a block.*where_it_is_misused.*1000 bytes.*where_it_is_allocated");
  }
  EXPECT_REPORT(where_it_is_misused(bytes_of(where_it_is_allocated(100'000)) + 4'096), "into the middle of a block");
}

TEST_F(CheckedHeapDeathTest, a_byte_written_behind_a_small_block_is_reported_when_it_is_freed) {
  EXPECT_REPORT(
      {
        void* const block = where_it_is_allocated(100);
        bytes_of(block)[100] = 1;
        where_it_is_misused(block);
      },
      "written behind the end of a block.*where_it_is_misused.*100 bytes.*where_it_is_allocated");
}

TEST_F(CheckedHeapDeathTest, a_write_behind_a_larger_block_meets_a_guard_page) {
  EXPECT_REPORT(bytes_of(where_it_is_allocated(100'000))[100'000 + 16] = 1,
                "a guard page was touched.*100000 bytes.*where_it_is_allocated");
}

TEST_F(CheckedHeapDeathTest, allocations_that_fail_take_no_guard_page_from_those_after_them) {
  EXPECT_REPORT(
      {
        // More than there are guard pages for.
        for (int i = 0; i < 20'000; ++i) {
          by_free(by_malloc(std::size_t{32} << 30));
        }
        bytes_of(where_it_is_allocated(100'000))[100'000 + 16] = 1;
      },
      "a guard page was touched.*100000 bytes.*where_it_is_allocated");
}

TEST_F(CheckedHeapDeathTest, a_write_before_a_larger_block_is_reported_when_it_is_freed) {
  EXPECT_REPORT(
      {
        void* const block = where_it_is_allocated(100'000);
        bytes_of(block)[-8] = 1;
        where_it_is_misused(block);
      },
      "written before the beginning of a block.*where_it_is_misused");
}

TEST_F(CheckedHeapDeathTest, sampled_small_blocks_have_guard_pages_too) {
  EXPECT_REPORT(
      {
        // One in 512: among so many there is one.
        for (int i = 0; i < 1'000; ++i) {
          bytes_of(where_it_is_allocated(48))[48 + 16] = 1;
        }
      },
      "a guard page was touched.*48 bytes.*where_it_is_allocated");
}

TEST_F(CheckedHeapDeathTest, a_touch_of_a_freed_guarded_block_differs_from_one_behind_the_block_before_it) {
  // Behind the guard page of a live block, whose own end is just before it.
  EXPECT_REPORT(
      {
        void* blocks[16];
        for (void*& block : blocks) {
          block = where_it_is_allocated(70'000);
        }
        for (int i = 1; i < 16; i += 2) {
          where_it_is_freed(blocks[i]);
        }
        bytes_of(blocks[1])[5] = 1;
      },
      "a block was touched after it was freed.*70000 bytes.*where_it_is_allocated.*where_it_is_freed");
}

TEST_F(CheckedHeapDeathTest, a_write_to_a_freed_small_block_is_reported_when_its_quarantine_ends) {
  EXPECT_REPORT(
      {
        void* volatile block = where_it_is_allocated(200);
        where_it_is_freed(block);
        bytes_of(block)[150] = 1;
        free_many_others();
      },
      "written to a block after it was freed.*where_it_is_allocated.*where_it_is_freed");
}

TEST_F(CheckedHeapDeathTest, a_read_of_a_freed_larger_block_is_reported_at_once) {
  EXPECT_REPORT(
      {
        void* volatile block = where_it_is_allocated(200'000);
        where_it_is_freed(block);
        std::exit(bytes_of(block)[100'000]);
      },
      "touched after it was freed.*where_it_is_allocated.*where_it_is_freed");
}

TEST_F(CheckedHeapDeathTest, realloc_and_size_of_a_freed_block_are_reported) {
  EXPECT_REPORT(
      {
        void* volatile block = where_it_is_allocated(50);
        where_it_is_freed(block);
        std::exit(by_realloc(block, 60) != nullptr);
      },
      "realloc of a block that was freed already.*where_it_is_freed");
  EXPECT_REPORT(
      {
        void* volatile block = where_it_is_allocated(50);
        where_it_is_freed(block);
        std::exit(static_cast<int>(by_usable_size(block)));
      },
      "size asked of a block that was freed already.*where_it_is_freed");
}

TEST_F(CheckedHeapDeathTest, a_free_with_a_wrong_size_is_reported) {
  EXPECT_REPORT(by_free_sized(where_it_is_allocated(50), 60), "free_sized with a size other.*50 bytes");
}

TEST_F(CheckedHeapDeathTest, a_free_into_a_destroyed_heap_is_reported) {
  EXPECT_REPORT(
      {
        by_arena* const heap = by_arena_create();
        void* const block = by_arena_alloc(heap, 70);
        by_arena_destroy(heap);
        where_it_is_misused(block);
      },
      "free of a block that was freed already.*where_it_is_misused");
}

TEST_F(CheckedHeapDeathTest, a_loop_beyond_its_stated_bound_is_reported) {
  EXPECT_REPORT(
      {
        blockyard::base::Bound bound("lists of remote frees adopted", 2);
        bound.turn();
        bound.turn();
        bound.turn();
      },
      "more turns of a loop than stated: lists of remote frees adopted");
}

TEST(CheckedHeap, fresh_and_freed_blocks_are_filled_with_poison) {
  auto* volatile const block = bytes_of(by_malloc(300));
  EXPECT_EQ(block[0], 0xCD);
  EXPECT_EQ(block[299], 0xCD);
  by_free(block);
  EXPECT_EQ(block[0], 0xDD);
  EXPECT_EQ(block[299], 0xDD);
}

TEST(CheckedHeap, calloc_is_zero_all_the_same) {
  auto* const block = bytes_of(by_calloc(3, 100));
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(block[i], 0);
  }
  by_free(block);
}

TEST(CheckedHeap, the_invariant_walker_sees_an_overrun_before_the_block_is_freed) {
  auto* const block = bytes_of(by_malloc(100));
  ASSERT_EQ(by_heap_check(), nullptr);
  const unsigned char before = block[100];
  block[100] = 1;
  const char* const found = by_heap_check();
  block[100] = before;
  ASSERT_NE(found, nullptr);
  EXPECT_STREQ(found, "something was written behind the end of a block");
  by_free(block);
}

TEST(CheckedHeap, a_freed_block_is_not_handed_out_again_at_once) {
  void* const block = by_malloc(64);
  by_free(block);
  for (int i = 0; i < 500; ++i) {
    void* const other = by_malloc(64);
    ASSERT_NE(other, block);
    by_free(other);
  }
}

// A process that has as many mappings as it can is refused what splits one. What then can't be made accessible again
// must not be handed out, must not be lost, and comes back once the system no longer refuses.
TEST(CheckedHeap, a_freed_block_whose_pages_the_system_keeps_is_handed_out_only_once_it_gives_them_back) {
  using blockyard::pages::access_is_refused;
  const auto used = [] {
    by_heap_statistics now{};
    by_heap_get_statistics(&now);
    return now.used;
  };
  free_many_others();
  const std::uint64_t before = used();
  constexpr std::size_t large = 100'000;
  std::vector<void*> blocks(100);
  for (void*& block : blocks) {
    block = by_malloc(large);
  }
  for (void* block : blocks) {
    by_free(block);
  }
  access_is_refused.store(true);
  free_many_others();
  for (void*& block : blocks) {
    block = by_malloc(large);
    ASSERT_NE(block, nullptr);
    std::memset(block, 1, large);
  }
  EXPECT_GE(used(), before + 2 * blocks.size() * large);
  EXPECT_EQ(by_heap_check(), nullptr);
  for (void* block : blocks) {
    by_free(block);
  }
  free_many_others();
  access_is_refused.store(false);
  free_many_others();
  EXPECT_LE(used(), before + blocks.size() * large / 2);
  EXPECT_EQ(by_heap_check(), nullptr);
}

// A free makes room in the quarantine: it checks an old block of any heap, the longer the larger, and gives it
// back to that heap.
TEST(CheckedHeap, a_heap_is_destroyed_only_when_nobody_gives_a_block_back_to_it) {
  constexpr std::size_t large = std::size_t{1} << 20;
  std::atomic<bool> ended{false};
  std::thread others([&] {
    while (!ended.load()) {
      by_free(by_malloc(large));
    }
  });
  for (int round = 0; round < 300; ++round) {
    by_arena* const heap = by_arena_create();
    for (int i = 0; i < 4; ++i) {
      by_arena_free(heap, by_arena_alloc(heap, large));
    }
    by_arena_destroy(heap);
  }
  ended.store(true);
  others.join();
  EXPECT_EQ(by_heap_check(), nullptr);
}

TEST(CheckedHeap, thousands_of_guarded_blocks_are_more_than_the_guards_and_still_served) {
  std::vector<void*> blocks(20'000);
  for (void*& block : blocks) {
    block = by_malloc(9'000);
    ASSERT_NE(block, nullptr);
  }
  EXPECT_EQ(by_heap_check(), nullptr);
  for (void* block : blocks) {
    by_free(block);
  }
  EXPECT_EQ(by_heap_check(), nullptr);
}

}  // namespace
