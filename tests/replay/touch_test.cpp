// What replay writes into fresh blocks, at the bytes where mistakes hide: blocks that begin or end near a page's edge.
#include "replay/run/touch.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace blockyard::replay {
namespace {

constexpr std::size_t page = 4096;

class Touching : public testing::Test {
 protected:
  Touching()
      : bytes_(static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~Touching() override { munmap(bytes_, size); }

  // Pages of the mapping that hold a byte that is not 0, and how many bytes do.
  std::set<std::size_t> written_pages() const {
    std::set<std::size_t> pages;
    for (std::size_t at = 0; at < size; ++at) {
      if (bytes_[at] != 0) pages.insert(at / page);
    }
    return pages;
  }
  std::vector<std::size_t> written_bytes() const {
    std::vector<std::size_t> bytes;
    for (std::size_t at = 0; at < size; ++at) {
      if (bytes_[at] != 0) bytes.push_back(at);
    }
    return bytes;
  }

  static constexpr std::size_t size = 16 * page;
  char* bytes_;
};

TEST_F(Touching, pages_writes_into_every_page_that_the_block_covers) {
  for (const std::size_t begin : {std::size_t{0}, std::size_t{16}, page - 16, page - 1, page, page + 1}) {
    for (const std::size_t length :
         {std::size_t{1}, std::size_t{16}, page - 1, page, page + 1, 2 * page - 1, 5 * page + 17}) {
      std::fill(bytes_, bytes_ + size, '\0');
      touch_bytes(Touch::page, bytes_ + begin, length);
      std::set<std::size_t> covered;
      for (std::size_t at = begin; at < begin + length; ++at) covered.insert(at / page);
      EXPECT_EQ(written_pages(), covered) << "a block of " << length << " bytes at " << begin;
    }
  }
}

TEST_F(Touching, pages_writes_one_byte_per_page) {
  touch_bytes(Touch::page, bytes_ + page - 16, 3 * page);
  EXPECT_EQ(written_bytes(), (std::vector<std::size_t>{page - 16, page, 2 * page, 3 * page}));
}

TEST_F(Touching, all_writes_every_byte_and_no_other) {
  touch_bytes(Touch::all, bytes_ + 100, 5000);
  const std::vector<std::size_t> written = written_bytes();
  ASSERT_EQ(written.size(), 5000u);
  EXPECT_EQ(written.front(), 100u);
  EXPECT_EQ(written.back(), 5099u);
}

TEST_F(Touching, an_empty_block_is_not_written) {
  touch_bytes(Touch::page, bytes_, 0);
  touch_bytes(Touch::all, bytes_, 0);
  EXPECT_TRUE(written_bytes().empty());
}

}  // namespace
}  // namespace blockyard::replay
