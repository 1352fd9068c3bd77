// What by_lifetime_prepare() spares a thread's first blocks.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "block/watch.hpp"
#include "own_thread.hpp"

namespace {

using namespace blockyard;

/// Whether the system has provided memory for all of a block that nobody wrote to yet.
bool is_resident(const void* block, std::size_t size) {
  const auto begin = reinterpret_cast<std::uintptr_t>(block);
  for (std::uintptr_t page = begin & ~std::uintptr_t{4095}; page < begin + size; page += 4096) {
    unsigned char there = 0;
    if (mincore(reinterpret_cast<void*>(page), 4096, &there) != 0 || (there & 1) == 0) {  // NOLINT
      return false;
    }
  }
  return true;
}

class PreparedThread : public testing::TestWithParam<Lifetime> {};
INSTANTIATE_TEST_SUITE_P(Lifetimes, PreparedThread, testing::Values(Lifetime::temp, Lifetime::temp_job));

TEST_P(PreparedThread, has_memory_for_its_first_blocks) {
  if (block::process_is_watched()) {
    GTEST_SKIP() << "skipped: this process is watched, and hides memory that holds no block";
  }
  constexpr std::size_t size = 12'000;
  // The first thread keeps what earlier tests used: the second one gets what nobody wrote to.
  on_a_new_thread([] {
    void* const used = allocate(size, 16, GetParam());
    on_a_new_thread([] {
      ASSERT_EQ(by_lifetime_prepare(), 0);
      void* const block = allocate(size, 16, GetParam());
      EXPECT_TRUE(is_resident(block, size));
      deallocate(block, GetParam());
    });
    deallocate(used, GetParam());
  });
}

TEST(Prepare, a_prepared_thread_without_a_temp_block_takes_new_settings_at_once) {
  on_a_new_thread([] {
    ASSERT_EQ(by_lifetime_prepare(), 0);
    ASSERT_EQ(by_temp_configure(300 * 16, 0), 0);
    std::byte* const first = bytes(temp_allocate(16, 16));
    for (int i = 1; i < 300; ++i) {
      ASSERT_EQ(bytes(temp_allocate(16, 16)), first + 16 * i);
    }
    expect_the_region_ends(first, 300 * 16);
    ASSERT_EQ(by_temp_configure(std::size_t{256} << 10, std::size_t{4} << 20), 0);
  });
}

}  // namespace
