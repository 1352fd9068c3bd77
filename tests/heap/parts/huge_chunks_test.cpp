// Which pages are asked for when a thread changes that while another one makes the region grow. The advice of madvise
// is recorded here, and the change comes in the middle of a growth.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <utility>

#include "heap/huge_chunks.hpp"
#include "heap/region.hpp"
#include "heap/settings.hpp"

namespace {

const char* watched = nullptr;  // an address, and the last advice for it
int advised = 0;
std::function<void()> before_next_advice;

}  // namespace

extern "C" int madvise(void* pages, std::size_t bytes, int advice) noexcept {
  if (before_next_advice) {
    std::exchange(before_next_advice, nullptr)();
  }
  if (watched >= pages && watched < static_cast<char*>(pages) + bytes &&
      (advice == MADV_HUGEPAGE || advice == MADV_NOHUGEPAGE)) {
    advised = advice;
  }
  return static_cast<int>(syscall(SYS_madvise, pages, bytes, advice));
}

namespace {

using namespace blockyard::heap;

void ask_for(bool huge) {
  settings.huge_pages_wait = !huge;
  ask_for_huge_pages(huge);
}

TEST(HugeChunks, a_growth_asks_for_the_pages_that_are_wanted_when_it_ends) {
  ASSERT_TRUE(reserve_region());
  for (const bool huge : {false, true}) {
    ask_for(!huge);
    watched = region.base + region.mapped();
    advised = 0;
    before_next_advice = [&] { ask_for(huge); };
    ASSERT_TRUE(grow_region(region.mapped() + chunk_bytes));
    EXPECT_EQ(advised, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  }
}

}  // namespace
