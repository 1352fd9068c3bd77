// Memory from the operating system, whatever its pages are: what is asked for by stretches of 4 KiB spares the
// neighbours. Pages are of 4 KiB on x86-64; `make aarch64` runs this with 16 and 64 KiB too.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/pages.hpp"

namespace {

namespace base = blockyard::base;

constexpr std::size_t step = 4096;
constexpr char old_byte = 0x5A;

class SystemPages : public ::testing::Test {
 protected:
  SystemPages() : memory_(static_cast<char*>(base::reserve_space(bytes_, step))) {}
  ~SystemPages() override { base::release_pages(memory_, bytes_); }
  SystemPages(const SystemPages&) = delete;
  SystemPages& operator=(const SystemPages&) = delete;

  bool holds(std::size_t from, std::size_t to, char byte) const {
    return std::all_of(memory_ + from, memory_ + to, [=](char each) { return each == byte; });
  }

  const std::size_t bytes_ = 3 * base::page_size();
  char* const memory_;
};

TEST_F(SystemPages, have_the_size_that_the_system_says) {
#if __has_include(<sys/mman.h>)
  EXPECT_EQ(base::page_size(), static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
#endif
  EXPECT_LE(base::page_size(), base::largest_page);
}

TEST_F(SystemPages, what_is_given_back_reads_as_zeros_and_its_neighbours_stay) {
  ASSERT_TRUE(base::commit_pages(memory_, bytes_));
  std::size_t given = 0;
  for (std::size_t from = 0; from < bytes_; from += step) {
    for (std::size_t to = from + step; to <= bytes_; to += step) {
      std::memset(memory_, old_byte, bytes_);
      const bool done = base::discard_pages(memory_ + from, to - from);
      EXPECT_TRUE(holds(0, from, old_byte)) << from << " to " << to;
      EXPECT_TRUE(holds(from, to, done ? 0 : old_byte)) << from << " to " << to;
      EXPECT_TRUE(holds(to, bytes_, old_byte)) << from << " to " << to;
      EXPECT_TRUE(done || to - from < 2 * base::page_size());
      given += done ? 1 : 0;
    }
  }
  EXPECT_GT(given, 0u);
}

TEST_F(SystemPages, a_part_of_a_page_is_committed_and_protecting_it_leaves_the_rest_usable) {
  for (std::size_t at = 0; at < bytes_; at += step) {
    ASSERT_TRUE(base::commit_pages(memory_ + at, step));
    memory_[at] = memory_[at + step - 1] = old_byte;
  }
  // The page in the middle, and what it may of its neighbours without their ends: nothing, as no part is a page.
  const std::size_t page = base::page_size();
  const std::size_t more = page - step;
  EXPECT_TRUE(base::protect_pages(memory_ + page - more, page + 2 * more));
  for (std::size_t at = 0; at < bytes_; at += step) {
    if (at < page || at >= 2 * page) {
      EXPECT_EQ(memory_[at], old_byte);
    }
  }
  EXPECT_DEATH(static_cast<volatile char*>(memory_)[page] = 0, "");
  EXPECT_DEATH(static_cast<volatile char*>(memory_)[2 * page - 1] = 0, "");
}

TEST_F(SystemPages, reservations_of_any_size_begin_with_a_page_and_are_given_back_whole) {
  for (const std::size_t size : {std::size_t{1}, step + 1, 3 * step, base::largest_page + step}) {
    char* const some = static_cast<char*>(base::reserve_pages(size, 4 * base::largest_page));
    ASSERT_NE(some, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(some) % (4 * base::largest_page), 0u);
    std::memset(some, old_byte, size);
    base::release_pages(some, size);
    EXPECT_TRUE(base::reserve_pages_at(some, size)) << "something of it stayed mapped";
    base::release_pages(some, size);
  }
}

}  // namespace
