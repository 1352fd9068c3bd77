// What by_lifetime_prepare() spares a thread's first blocks.
#include <gtest/gtest.h>

#if __has_include(<sys/resource.h>)
#include <sys/resource.h>
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bits.hpp"
#include "base/pages.hpp"
#include "block/watch.hpp"
#include "own_thread.hpp"

namespace {

using namespace blockyard;

/// Whether the system has provided memory for all of a block that nobody wrote to yet.
bool is_resident(const void* block, std::size_t size) {
  const auto at = reinterpret_cast<std::uintptr_t>(block);
  const std::size_t lead = at % base::page_size();
  const std::size_t least = base::align_up(at % base::least_page + size, base::least_page);  // all that qemu brings in
  return base::resident_bytes(static_cast<const char*>(block) - lead, lead + size) >= least;
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

#if __has_include(<sys/resource.h>)
/// Page faults of the calling thread while it allocates 1000 blocks of 4 bytes, of which its region holds 818.
long faults_of_an_overflow() {
  static std::array<void*, 1000> blocks;
  const auto faults = [] {
    rusage used{};
    getrusage(RUSAGE_THREAD, &used);
    return used.ru_minflt;
  };
  const long before = faults();
  for (void*& block : blocks) {
    block = temp_allocate(4, 4);
  }
  return faults() - before;
}

TEST(Prepare, a_prepared_threads_first_blocks_that_do_not_fit_take_no_page_fault) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "skipped: the sanitizer's own memory is faulted in";
#endif
  if (block::process_is_watched()) {
    GTEST_SKIP() << "skipped: this process is watched, and hides memory that holds no block";
  }
  ASSERT_EQ(by_temp_configure(818 * 4, 0), 0);
  long least = 1'000'000;
  // The first thread has the program's code read in, and keeps its own memory while the others, each inside the one
  // before, get what nobody used. The least of several, since the system may take a page away at any time.
  on_a_new_thread([&least] {
    faults_of_an_overflow();
    on_a_new_thread([&least] {
      ASSERT_EQ(by_lifetime_prepare(), 0);
      least = std::min(least, faults_of_an_overflow());
      on_a_new_thread([&least] {
        ASSERT_EQ(by_lifetime_prepare(), 0);
        least = std::min(least, faults_of_an_overflow());
      });
    });
  });
  EXPECT_EQ(least, 0);
  ASSERT_EQ(by_temp_configure(std::size_t{256} << 10, std::size_t{4} << 20), 0);
}
#endif

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
