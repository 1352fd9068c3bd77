// Which pages are asked for when a thread changes that while another one makes the region grow. The advice of madvise
// is recorded here, and the change comes in the middle of a growth.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdint>
#include <functional>
#include <utility>

#include "heap/slab_tables.hpp"
#include "pages/purge.hpp"

namespace {

const char* watched = nullptr;  // an address, and the last advice for it
int advised = 0;
std::function<void()> before_next_advice;

}  // namespace

// The heap's calls go to the kernel by this.
extern "C" long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long values[6];
  for (long& value : values) {
    value = va_arg(list, long);
  }
  va_end(list);
  if (number == SYS_madvise) {
    if (before_next_advice) {
      std::exchange(before_next_advice, nullptr)();
    }
    const char* const pages = reinterpret_cast<const char*>(values[0]);
    const int advice = static_cast<int>(values[2]);
    if (watched >= pages && watched < pages + values[1] && (advice == MADV_HUGEPAGE || advice == MADV_NOHUGEPAGE)) {
      advised = advice;
    }
  }
  using Syscall = long(long, ...);
  static auto* const next = reinterpret_cast<Syscall*>(dlsym(RTLD_NEXT, "syscall"));
  return next(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}

namespace {

using namespace blockyard::heap;

void ask_for(bool huge) {
  static HugePages huge_pages(region);
  huge_pages.allow(huge);
}

TEST(HugeChunks, a_growth_asks_for_the_pages_that_are_wanted_when_it_ends) {
  ASSERT_TRUE(reserve_region(false));
  for (const bool huge : {false, true}) {
    ask_for(!huge);
    watched = region.base + region.mapped();
    advised = 0;
    before_next_advice = [&] { ask_for(huge); };
    ASSERT_TRUE(region.grow(region.mapped() + chunk_bytes));
    const bool huge_is_a_chunk = blockyard::base::page_size() == blockyard::base::least_page;
    EXPECT_EQ(advised, huge && huge_is_a_chunk ? MADV_HUGEPAGE : MADV_NOHUGEPAGE)
        << "a huge page of 32 or 512 MiB brings in more than the heap ever wants";
  }
}

}  // namespace
