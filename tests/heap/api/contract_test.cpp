// heap.h against what malloc's contract promises: alignment, errno, zero sizes, overflow, contents kept.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "blockyard/heap.h"
#include "many.hpp"

namespace {

std::uintptr_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// Sizes around every boundary that the heap knows: classes, slabs, pages, medium and large blocks.
std::vector<std::size_t> interesting_sizes() {
  std::vector<std::size_t> sizes{0, 1, 2, 15};
  for (std::size_t power = 16; power <= (std::size_t{4} << 20); power *= 2) {
    for (const std::size_t size : {power - 1, power, power + 1, power + power / 2}) {
      sizes.push_back(size);
    }
  }
  return sizes;
}

TEST(HeapContract, every_block_is_aligned_to_16_and_holds_its_size) {
  for (const std::size_t size : interesting_sizes()) {
    void* const block = by_malloc(size);
    ASSERT_NE(block, nullptr) << size;
    EXPECT_EQ(address(block) % 16, 0u) << size;
    EXPECT_GE(by_usable_size(block), size);
    std::memset(block, 0xA5, by_usable_size(block));
    by_free(block);
  }
  EXPECT_EQ(by_heap_check(), nullptr);
}

TEST(HeapContract, rounding_wastes_at_most_a_quarter_above_the_128_bytes_of_the_smallest_classes) {
  for (std::size_t size = 129; size <= 8192; ++size) {
    void* const block = by_malloc(size);
    EXPECT_LE((by_usable_size(block) - size) * 4, size) << size;
    by_free(block);
  }
}

TEST(HeapContract, zero_bytes_give_distinct_blocks_however_many) {
  std::set<void*> blocks;
  for (int i = 0; i < 70'000; ++i) {
    void* const block = by_malloc(0);
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(blocks.insert(block).second);
  }
  for (void* const block : blocks) {
    by_free(block);
  }
  EXPECT_EQ(by_heap_check(), nullptr);
}

TEST(HeapContract, a_block_of_zero_bytes_grows_and_is_freed_as_any_other) {
  auto* const block = static_cast<char*>(by_realloc(by_malloc(0), 100));
  ASSERT_NE(block, nullptr);
  std::memset(block, 1, 100);
  by_free(block);
  void* const empty = by_calloc(0, 8);
  EXPECT_NE(empty, nullptr);
  void* const still_empty = by_realloc(empty, 0);
  EXPECT_NE(still_empty, nullptr);
  by_free(still_empty);
  EXPECT_DEATH(by_realloc(still_empty, 0), "");
}

TEST(HeapContract, free_of_null_is_nothing_and_free_keeps_errno) {
  errno = 77;
  by_free(nullptr);
  by_free(by_malloc(100));
  by_free(by_malloc(10'000'000));
  EXPECT_EQ(errno, 77);
  EXPECT_EQ(by_usable_size(nullptr), 0u);
}

TEST(HeapContract, impossible_sizes_fail_with_enomem) {
  const std::size_t most = std::numeric_limits<std::size_t>::max();
  for (const std::size_t size :
       {most, most - 4096, static_cast<std::size_t>(PTRDIFF_MAX), static_cast<std::size_t>(PTRDIFF_MAX) + 1}) {
    errno = 0;
    EXPECT_EQ(by_malloc(size), nullptr) << size;
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
    EXPECT_EQ(by_aligned_alloc(4096, size), nullptr) << size;
    EXPECT_EQ(errno, ENOMEM);
  }
  errno = 0;
  EXPECT_EQ(by_calloc(most / 2, 3), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  void* const block = by_malloc(100);
  std::memset(block, 0x5A, 100);
  EXPECT_EQ(by_realloc(block, most), nullptr);
  EXPECT_EQ(static_cast<unsigned char*>(block)[99], 0x5A) << "a failed realloc must leave the block alone";
  by_free(block);
}

TEST(HeapContract, calloc_is_zero_also_in_recycled_memory) {
  for (const std::size_t size : {std::size_t{24}, std::size_t{5000}, std::size_t{70'000}, std::size_t{3} << 20}) {
    for (int round = 0; round < 3; ++round) {
      auto* const block = static_cast<unsigned char*>(by_calloc(1, size));
      ASSERT_NE(block, nullptr);
      for (std::size_t i = 0; i < size; ++i) {
        ASSERT_EQ(block[i], 0) << size << " at " << i;
      }
      std::memset(block, 0xFF, size);
      by_free(block);
    }
  }
}

TEST(HeapContract, alignment_is_honoured_up_to_4_mib_and_refused_when_it_is_no_power_of_two) {
  for (std::size_t alignment = 1; alignment <= (std::size_t{4} << 20); alignment *= 2) {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{5000}, std::size_t{200'000}}) {
      void* const block = by_aligned_alloc(alignment, size);
      ASSERT_NE(block, nullptr) << alignment;
      EXPECT_EQ(address(block) % alignment, 0u) << alignment << ", " << size;
      EXPECT_GE(by_usable_size(block), size);
      std::memset(block, 1, size);
      by_free(block);
    }
  }
  for (const std::size_t alignment : {std::size_t{0}, std::size_t{3}, std::size_t{24}, std::size_t{4097}}) {
    errno = 0;
    EXPECT_EQ(by_aligned_alloc(alignment, 64), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
  EXPECT_EQ(by_heap_check(), nullptr);
}

TEST(HeapContract, realloc_keeps_the_contents_on_every_path_up_and_down) {
  const std::vector<std::size_t> sizes = interesting_sizes();
  for (const std::size_t from : sizes) {
    for (const std::size_t to :
         {std::size_t{0}, std::size_t{40}, std::size_t{9000}, std::size_t{300'000}, from / 3, from * 2}) {
      auto* block = static_cast<unsigned char*>(by_malloc(from));
      for (std::size_t i = 0; i < from; ++i) {
        block[i] = static_cast<unsigned char>(i * 7 + from);
      }
      block = static_cast<unsigned char*>(by_realloc(block, to));
      ASSERT_NE(block, nullptr);
      ASSERT_GE(by_usable_size(block), to);
      for (std::size_t i = 0; i < (from < to ? from : to); ++i) {
        ASSERT_EQ(block[i], static_cast<unsigned char>(i * 7 + from)) << from << " to " << to << " at " << i;
      }
      by_free(block);
    }
  }
  EXPECT_EQ(by_heap_check(), nullptr);
}

#if !BLOCKYARD_CHECKED  // there the block moves, and the old one waits in quarantine
TEST(HeapContract, a_shrunk_large_block_gives_its_pages_back) {
  void* block = by_malloc(std::size_t{8} << 20);
  by_heap_statistics before{};
  by_heap_get_statistics(&before);
  block = by_realloc(block, std::size_t{1} << 20);
  by_heap_statistics after{};
  by_heap_get_statistics(&after);
  EXPECT_LE(after.used + (std::size_t{7} << 20), before.used);
  by_free(block);
}
#endif

using HeapContractDeathTest = testing::Test;

TEST(HeapContractDeathTest, a_foreign_pointer_is_reported_and_not_dereferenced) {
  int on_stack = 0;
  EXPECT_DEATH(by_free(&on_stack), "never handed out");
  EXPECT_DEATH(by_free(reinterpret_cast<void*>(std::uintptr_t{0x10})), "never handed out");
}

TEST(HeapContractDeathTest, a_small_block_freed_twice_in_a_row_is_reported) {
  for (const std::size_t size : {0u, 16u, 200u, 8'000u}) {
    EXPECT_DEATH(
        {
          void* const block = by_malloc(size);
          by_free(block);
          by_free(block);
        },
        "freed already");
  }
}

TEST(HeapContractDeathTest, a_freed_block_that_was_written_to_is_reported_before_its_link_is_followed) {
  EXPECT_DEATH(
      {
        const std::vector<void*> blocks = allocated(200, 64);
        free_all(blocks);
        for (void* block : blocks) {
          std::memset(block, 0x41, 8);
        }
        allocated(200, 64);
        for (int i = 0; i < 3'000; ++i) {  // the checked build checks at the end of the quarantine
          by_free(by_malloc(64));
        }
      },
      "written to a block after it was freed");
}

TEST(HeapContractDeathTest, a_pointer_into_a_small_block_is_reported) {
  for (const std::size_t size : {16u, 64u, 200u, 8'000u}) {
    auto* const block = static_cast<char*>(by_malloc(size));
    for (const std::size_t offset : {1u, 8u}) {
      EXPECT_DEATH(by_free(block + offset), "into the middle of a block");
      EXPECT_DEATH(by_free_sized(block + offset, size - offset), "into the middle of a block");
    }
    for (const std::size_t offset : {1u, 8u, 16u, 32u}) {
      if (offset < size) {
        EXPECT_DEATH(by_realloc(block + offset, 3 * size), "into the middle of a block");
        EXPECT_DEATH(static_cast<void>(by_usable_size(block + offset)), "into the middle of a block");
      }
    }
    by_free(block);
  }
}

// Where the class's bytes do not show it the block comes back to its slab first.
TEST(HeapContractDeathTest, a_pointer_into_a_block_of_48_bytes_is_reported_before_the_block_is_reused) {
  EXPECT_DEATH(
      {
        std::vector<char*> blocks(200);
        for (char*& block : blocks) {
          block = static_cast<char*>(by_malloc(48));
        }
        for (char* block : blocks) {
          by_free(block + 16);
        }
      },
      "into the middle of a block");
}

TEST(HeapContractDeathTest, a_second_free_is_reported_when_the_block_comes_back_to_its_slab) {
  EXPECT_DEATH(
      {
        const std::vector<void*> blocks = allocated(200, 64);
        free_all(blocks);
        free_all(blocks);
      },
      "freed already");
}

TEST(HeapContractDeathTest, a_block_freed_twice_with_another_freed_between_is_reported) {
  for (const std::size_t size : {16u, 200u, 8'000u}) {
    EXPECT_DEATH(
        {
          void* const block = by_malloc(size);
          void* const other = by_malloc(size);
          by_free(block);
          by_free(other);
          by_free(block);
        },
        "freed already");
  }
}

// The checked build knows more and says it.
#if defined(GTEST_USES_SIMPLE_RE)  // which has no alternatives
constexpr const char* no_live_block = "blockyard: .* of a ";
#else
constexpr const char* no_live_block = "no live block|into the middle of a block|freed already";
#endif

TEST(HeapContractDeathTest, freed_blocks_and_foreign_pointers_have_no_size) {
  int on_stack = 0;
  EXPECT_DEATH(static_cast<void>(by_usable_size(&on_stack)), "never handed out");
  for (const std::size_t size : {64u, 20'000u, 100'000u}) {
    void* const block = by_malloc(size);
    by_free(block);
    EXPECT_DEATH(static_cast<void>(by_usable_size(block)), no_live_block);
    EXPECT_DEATH(by_realloc(block, 4 * size), no_live_block);
  }
}

TEST(HeapContractDeathTest, a_large_block_freed_twice_or_from_inside_is_reported) {
  for (const std::size_t size : {20'000u, 100'000u}) {  // cached when freed, and not
    auto* const block = static_cast<char*>(by_malloc(size));
    EXPECT_DEATH(by_free(block + 4096), no_live_block);
    EXPECT_DEATH(by_free(block + by_usable_size(block) - 4096), no_live_block);
    EXPECT_DEATH(by_free(block + 16), no_live_block);
    EXPECT_DEATH(
        {
          by_free(block);
          by_free(block);
        },
        no_live_block);
    by_free(block);
  }
}

}  // namespace
