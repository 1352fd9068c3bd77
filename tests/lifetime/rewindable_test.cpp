// Rewindable arenas.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <thread>
#include <vector>

#include "blockyard/rewindable.hpp"
#include "blockyard/temp.hpp"
#include "checks/watched.hpp"

namespace {

using blockyard::rewindable;

TEST(Rewindable, rewinding_gives_the_same_memory_again) {
  rewindable arena;
  void* const first = arena.try_allocate(100);
  static_cast<void>(arena.try_allocate(5000));
  arena.rewind();
  EXPECT_EQ(arena.try_allocate(100), first);
}

TEST(Rewindable, an_arena_grows_and_keeps_its_memory_over_rewinds) {
  rewindable arena(4096);
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_NE(arena.try_allocate(100), nullptr);
  }
  const std::size_t held = arena.statistics().held_bytes;
  for (int round = 0; round < 5; ++round) {
    arena.rewind();
    for (int i = 0; i < 10'000; ++i) {
      ASSERT_NE(arena.try_allocate(100), nullptr);
    }
  }
  EXPECT_EQ(arena.statistics().held_bytes, held);
  EXPECT_EQ(arena.statistics().rewinds, 5u);
}

TEST(Rewindable, every_power_of_two_up_to_16_kib_is_an_alignment) {
  rewindable arena;
  for (std::size_t alignment = 1; alignment <= blockyard::max_alignment; alignment *= 2) {
    void* const block = arena.try_allocate(3, alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u) << alignment;
  }
}

TEST(Rewindable, size_zero_is_a_block_and_what_cannot_be_had_fails) {
  rewindable arena;
  EXPECT_NE(arena.try_allocate(0), arena.try_allocate(0));
  errno = 0;
  EXPECT_EQ(arena.try_allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  errno = 0;
  EXPECT_EQ(arena.try_allocate(8, 3), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST(Rewindable, blocks_of_many_threads_do_not_overlap) {
  rewindable arena(4096);
  constexpr unsigned per_thread = 5000;
  std::vector<std::vector<unsigned*>> blocks(4);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < per_thread; ++i) {
        auto* const block = static_cast<unsigned*>(arena.try_allocate(16));
        block[0] = t;
        block[1] = i;
        blocks[t].push_back(block);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (unsigned t = 0; t < 4; ++t) {
    for (unsigned i = 0; i < per_thread; ++i) {
      ASSERT_EQ(blocks[t][i][0], t);
      ASSERT_EQ(blocks[t][i][1], i);
    }
  }
}

TEST(Rewindable, a_child_is_invalid_after_its_parent_rewinds_and_so_is_a_childs_child) {
  rewindable parent;
  rewindable child(parent, 4096);
  rewindable grandchild(child, 4096);
  EXPECT_NE(grandchild.try_allocate(100), nullptr);
  parent.rewind();
  EXPECT_FALSE(child.valid());
  EXPECT_FALSE(grandchild.valid());
  errno = 0;
  EXPECT_EQ(grandchild.try_allocate(100), nullptr);
  EXPECT_EQ(errno, ESTALE);
  EXPECT_TRUE(parent.valid());
  EXPECT_NE(parent.try_allocate(100), nullptr);
}

TEST(Rewindable, a_childs_rewind_leaves_its_parent_alone) {
  rewindable parent;
  rewindable child(parent, 4096);
  char* const of_parent = static_cast<char*>(parent.try_allocate(16));
  std::strcpy(of_parent, "parent");
  std::memset(child.try_allocate(1000), 1, 1000);
  child.rewind();
  std::memset(child.try_allocate(1000), 2, 1000);
  EXPECT_STREQ(of_parent, "parent");
  EXPECT_TRUE(child.valid());
}

TEST(Rewindable, a_rewind_while_another_thread_allocates_stays_within_the_arenas_memory) {
  if (blockyard::checks::are_on()) {
    GTEST_SKIP() << "SKIPPED: this process has checks and would end; misuse_test looks at that";
  }
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "SKIPPED under ThreadSanitizer: the test writes to blocks that may overlap, on purpose";
#endif
  rewindable arena(4096);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop.load()) {
      // Outside the arena's memory, this would crash or a sanitizer would report it.
      if (void* const block = arena.try_allocate(200)) {
        std::memset(block, 1, 200);
      }
    }
  });
  for (int i = 0; i < 2000; ++i) {
    arena.rewind();
  }
  stop.store(true);
  other.join();
  arena.rewind();
  EXPECT_NE(arena.try_allocate(200), nullptr);
}

TEST(Rewindable, an_arena_is_a_memory_resource) {
  rewindable arena;
  std::pmr::vector<int> numbers(&arena);
  for (int i = 0; i < 1000; ++i) {
    numbers.push_back(i);
  }
  EXPECT_EQ(numbers[999], 999);
  EXPECT_GE(arena.statistics().used_bytes, 4000u);
}

}  // namespace
