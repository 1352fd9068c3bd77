// Memory ahead of need: reserve, prefault, purge. Steps are waited for by watching figures, never by a bare sleep, and
// for as long as the machine takes: what a janitor never does is the runner's to end.
#include <gtest/gtest.h>

#if __has_include(<sys/wait.h>)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "blockyard/heap.h"
#include "heap/background/maintenance.hpp"
#include "heap/pages/page_allocator.hpp"
#include "heap/statistics.hpp"

namespace {

using namespace blockyard::heap;

// As long again as a look takes: under Wine, where one at resident memory holds a lock that the janitor waits for, it
// takes half a second.
template <class Condition>
void await(Condition&& condition) {
  using Clock = std::chrono::steady_clock;
  for (auto begun = Clock::now(); !condition(); begun = Clock::now()) {
    std::this_thread::sleep_for(std::max<Clock::duration>(std::chrono::milliseconds(10), Clock::now() - begun));
  }
}

// A small program has a janitor only where it asks for one.
[[maybe_unused]] const int asked_for = by_heap_set(BY_HEAP_JANITOR, 1);

// For a frame whose end is to do all that there is to do.
constexpr std::uint64_t no_limit = ~std::uint64_t{0};

TEST(Janitor, keeps_as_much_ready_as_was_asked_for) {
  by_heap_reserve(std::size_t{24} << 20);
  await([] { return statistics().ready >= (std::uint64_t{24} << 20); });
  by_heap_reserve(0);
}

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

#if __has_include(<sys/wait.h>)
// A folder that stands before the paths of the kernel's files about control groups, in which the process is in /a/b.
class ControlGroup {
 public:
  ControlGroup() {
    std::filesystem::create_directories(root_ / "proc/self");
    std::filesystem::create_directories(root_ / "sys/fs/cgroup/a/b");
    write("proc/self/cgroup", "4:memory:/other\n0::/a/b\n");
    maintenance.memory_root = root_.c_str();
  }
  ~ControlGroup() {
    maintenance.memory_root = "";
    by_heap_reserve(std::size_t{40} << 20);
    await([&] { return statistics().ready >= std::uint64_t{40} << 20; });
    by_heap_reserve(0);
    std::filesystem::remove_all(root_);
  }
  void write(const char* file, const char* text) const { std::ofstream(root_ / file) << text; }

 private:
  static std::filesystem::path new_folder() {
    char name[] = "/tmp/blockyard-groups-XXXXXX";
    return mkdtemp(name);
  }
  std::filesystem::path root_ = new_folder();
};

TEST(Janitor, keeps_less_ready_where_a_control_group_above_is_nearly_full_of_what_cannot_be_dropped) {
  by_heap_reserve(24 * mib);
  await([] { return statistics().ready >= 24 * mib; });
  {
    const ControlGroup group;
    group.write("sys/fs/cgroup/a/b/memory.max", "max\n");
    group.write("sys/fs/cgroup/a/memory.max", "1073741824\n");
    group.write("sys/fs/cgroup/a/memory.high", "max\n");
    group.write("sys/fs/cgroup/a/memory.current", "1072693248\n");
    // 1 MiB is left, and the eighth of what is free with it.
    await([] { return statistics().ready <= 10 * mib; });
    group.write("sys/fs/cgroup/a/memory.stat", "anon 4096\ninactive_file 900000000\nactive_file 0\n");
    await([] { return statistics().ready >= 24 * mib; });
  }
  EXPECT_EQ(by_heap_check(), nullptr);
}

TEST(Janitor, keeps_less_ready_while_memory_is_waited_for) {
  by_heap_reserve(24 * mib);
  await([] { return statistics().ready >= 24 * mib; });
  {
    const ControlGroup group;
    group.write("sys/fs/cgroup/a/b/memory.pressure", "some avg10=34.50 avg60=3.10 avg300=0.20 total=1\nfull avg10=0\n");
    await([] { return statistics().ready <= 8 * mib; });
  }
}
#endif

TEST(Janitor, memory_that_stands_ready_is_handed_out_without_a_miss) {
  ASSERT_EQ(by_heap_prefault(std::size_t{40} << 20), 0);
  const by_heap_statistics before = statistics();
  std::vector<void*> blocks;
  for (int i = 0; i < 200; ++i) {
    blocks.push_back(by_malloc(100'000));
    blocks.push_back(by_malloc(500));
  }
  const by_heap_statistics after = statistics();
  EXPECT_EQ(after.ready_misses_medium, before.ready_misses_medium);
  EXPECT_EQ(after.ready_misses_small, before.ready_misses_small);
  EXPECT_EQ(after.populated_by_program, before.populated_by_program);
  for (void* block : blocks) {
    by_free(block);
  }
}

// A size that went below zero must not be populated until the machine's memory is gone.
TEST(Janitor, refuses_to_populate_more_than_the_machine_has) {
  const by_heap_statistics before = statistics();
  errno = 0;
  EXPECT_EQ(by_heap_prefault(~std::size_t{0}), -1);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(statistics().populated_by_program, before.populated_by_program);
}

TEST(Janitor, reserves_no_more_than_the_machine_has) {
  const std::uint64_t before = statistics().populated_by_janitor;
  by_heap_reserve(~std::size_t{0});
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  by_heap_reserve(0);
  EXPECT_LT(statistics().populated_by_janitor, before + (std::uint64_t{32} << 20));
}

// More heaps at once than a round sweeps: those that have waited longest must have their turn too.
TEST(Janitor, adopts_what_other_threads_freed_in_every_heap_whose_thread_has_ended) {
  constexpr int threads = 60;
  std::vector<void*> blocks(threads * 200);
  std::barrier<> all_allocated(threads);
  std::vector<std::thread> running;
  for (int index = 0; index < threads; ++index) {
    running.emplace_back([&, index] {
      for (int i = 0; i < 200; ++i) {
        blocks[static_cast<std::size_t>(index * 200 + i)] = by_malloc(400);
      }
      all_allocated.arrive_and_wait();  // so that each has a heap of its own
    });
  }
  for (std::thread& thread : running) {
    thread.join();
  }
  const std::uint64_t before = statistics().remote_frees_waiting;
  for (void* block : blocks) {
    by_free(block);
  }
  by_heap_reserve(std::size_t{32} << 20);  // wakes a janitor that has nothing else to do
  await([&] {
    by_heap_frame_end(no_limit);  // this thread's own heap is not the janitor's to look after
    return statistics().remote_frees_waiting <= before;
  });
  by_heap_reserve(0);
}

TEST(Janitor, gives_a_freed_level_back_by_itself) {
  std::vector<void*> level;
  for (int i = 0; i < 100; ++i) {
    level.push_back(std::memset(by_malloc(std::size_t{2} << 20), 1, std::size_t{2} << 20));
  }
  const std::uint64_t committed = statistics().committed;
  for (void* block : level) {
    by_free(block);
  }
  await([&] { return statistics().committed + (std::uint64_t{180} << 20) <= committed; });
  EXPECT_EQ(by_heap_check(), nullptr);
}

// Blocks that outlive their neighbours: what surrounds them goes back, and when they go too, nothing of them may stay.
TEST(Janitor, gives_back_what_is_freed_among_what_has_gone_back) {
  constexpr std::size_t bytes = 48'000;  // 12 pages: too short to be given back for its own sake
#if BLOCKYARD_CHECKED
  // Each has a guard page and at most one more, and of those that were freed 16 MiB wait in quarantine.
  constexpr std::size_t taken = 14 * 4096;
  constexpr std::size_t waiting = (std::size_t{16} << 20) / bytes * taken;
#else
  constexpr std::size_t taken = bytes;
  constexpr std::size_t waiting = 0;
#endif
  by_heap_trim();
  const std::uint64_t before = statistics().committed;
  std::vector<void*> passing;
  std::vector<void*> lasting;
  for (int i = 0; i < 6'400; ++i) {
    (i % 16 == 0 ? lasting : passing).push_back(std::memset(by_malloc(bytes), 1, bytes));
  }
  for (void* block : passing) {
    by_free(block);
  }
  // The reserve has followed the burst, and takes its time.
  std::uint64_t sparse = 0;
  await([&] {
    sparse = statistics().committed;
    return sparse <= before + lasting.size() * taken + waiting + (std::uint64_t{8} << 20);
  });
  for (void* block : lasting) {
    by_free(block);
  }
  await([&] { return statistics().committed + lasting.size() * bytes * 8 / 10 <= sparse; });
  EXPECT_EQ(by_heap_check(), nullptr);
}

// A game's turns: much is freed and soon wanted again, over a heap that is large beside it. To give that back meanwhile
// and populate it again was most of the janitor's time. A machine so slow that the program seems quiet for a tick of
// the janitor's clock spoils a try, which then does not count.
TEST(Janitor, keeps_what_a_program_that_comes_and_goes_will_want_again) {
  constexpr std::size_t bytes = 200'000;
  const auto allocated = [](int blocks) {
    std::vector<void*> result;
    for (int i = 0; i < blocks; ++i) {
      result.push_back(std::memset(by_malloc(bytes), 1, bytes));
    }
    return result;
  };
  const auto free_all = [](const std::vector<void*>& blocks) {
    for (void* block : blocks) {
      by_free(block);
    }
  };
  const std::vector<void*> lasting = allocated(1'000);
  using Clock = std::chrono::steady_clock;
  bool kept = false;
  for (int tries = 0; tries < 10 && !kept;) {
    Clock::duration longest{0};
    const std::vector<void*> turn = allocated(80);
    const std::uint64_t before = statistics().purged;
    free_all(turn);
    for (int frame = 0; frame < 100; ++frame) {  // longer than free memory waits before it goes back
      const auto begun = Clock::now();
      const std::vector<void*> passing = allocated(4);
      std::this_thread::sleep_for(std::chrono::milliseconds(8));
      free_all(passing);
      longest = std::max(longest, Clock::now() - begun);
    }
    tries += longest < std::chrono::milliseconds(16) ? 1 : 0;
    kept = statistics().purged - before < 4 * bytes;
  }
  EXPECT_TRUE(kept);
  free_all(lasting);
}

TEST(Janitor, what_a_program_sets_is_read_back_and_what_is_out_of_range_is_refused) {
  const std::uint64_t before = by_heap_get(BY_HEAP_PURGE);
  EXPECT_EQ(by_heap_set(BY_HEAP_PURGE, 123), 0);
  EXPECT_EQ(by_heap_get(BY_HEAP_PURGE), 123u);
  errno = 0;
  EXPECT_EQ(by_heap_set(BY_HEAP_PERIOD, 1), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_NE(by_heap_get(BY_HEAP_PERIOD), 1u);
  EXPECT_EQ(by_heap_set(static_cast<by_heap_setting>(BY_HEAP_HUGE_PAGES + 1), 1), -1);
  EXPECT_EQ(by_heap_set(BY_HEAP_PURGE, before), 0);
}

TEST(Janitor, keeps_what_the_reserve_is_set_to) {
  const std::uint64_t before = by_heap_get(BY_HEAP_RESERVE);
  ASSERT_EQ(by_heap_set(BY_HEAP_RESERVE, std::uint64_t{20} << 20), 0);
  await([] { return statistics().ready >= (std::uint64_t{20} << 20); });
  EXPECT_EQ(by_heap_set(BY_HEAP_RESERVE, before), 0);
}

TEST(Janitor, switched_off_it_leaves_its_work_to_the_end_of_a_frame_and_comes_back_when_switched_on) {
  ASSERT_EQ(by_heap_set(BY_HEAP_JANITOR, 0), 0);
  by_heap_trim();
  // The janitor may be in its last round: a frame that ends meanwhile leaves the work to it.
  await([] {
    by_heap_frame_end(no_limit);
    return statistics().ready >= by_heap_get(BY_HEAP_RESERVE);
  });
  ASSERT_EQ(by_heap_set(BY_HEAP_JANITOR, 1), 0);
  by_heap_reserve(std::size_t{28} << 20);
  await([] { return statistics().ready >= (std::uint64_t{28} << 20); });
  by_heap_reserve(0);
}

// As blockyard/heap.h promises it: the program does nothing, and the janitor all that it can.
TEST(Janitor, what_it_works_on_is_neither_used_nor_live) {
  constexpr std::uint64_t one_slab = std::uint64_t{64} << 10;
  const std::uint64_t purge = by_heap_get(BY_HEAP_PURGE);
  ASSERT_EQ(by_heap_set(BY_HEAP_PURGE, 0), 0);
  by_heap_trim();
  by_heap_statistics before = statistics();
  for (int look = 0; look < 100; ++look) {  // the least: the janitor may be making a slab
    const by_heap_statistics now = statistics();
    before = now.used < before.used ? now : before;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  std::uint64_t worked = 0;
  int most = 200'000;
  for (int round = 0; worked == 0 || (worked < (std::uint64_t{512} << 20) && most > 0); ++round) {
    by_heap_reserve(round % 2 == 0 ? std::size_t{64} << 20 : 0);
    for (int look = 0; look < 500; ++look, --most) {
      const by_heap_statistics now = statistics();
      ASSERT_LE(now.used, before.used + one_slab);
      ASSERT_LE(now.live, before.live + one_slab);
      ASSERT_LE(now.live, now.used);
      ASSERT_LE(now.ready + now.used, now.committed);
      worked = now.populated_by_janitor - before.populated_by_janitor + now.purged - before.purged;
    }
  }
  by_heap_reserve(0);
  ASSERT_EQ(by_heap_set(BY_HEAP_PURGE, purge), 0);
}

#if __has_include(<sys/wait.h>)
// In a forked child nobody is left to give it back. With one thread there was nobody but the thread that forks.
TEST(Janitor, what_was_in_work_at_a_fork_is_free_in_the_child) {
  std::atomic<bool> over{false};
  std::thread second([&] {
    while (!over) {
      std::this_thread::yield();
    }
  });
  const PageRun run = page_allocator.pages.allocate(100, 1, Prefer::ready, PageState::in_work);
  const pid_t child = fork();
  if (child == 0) {
    const bool none_in_work = page_allocator.pages.totals().in_work == 0;
    _exit(none_in_work && by_heap_check() == nullptr ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  over = true;
  second.join();
  EXPECT_GE(page_allocator.pages.totals().in_work, 100u);  // in the parent it is still whose it was
  page_allocator.pages.free(run.first, PageState::free_dirty);
}
#endif

TEST(Janitor, resident_memory_is_what_the_program_wrote_to_and_falls_when_it_is_given_back) {
  constexpr std::size_t bytes = std::size_t{64} << 20;
  by_heap_trim();
  const std::uint64_t before = statistics().resident;
  void* const block = by_malloc(bytes);
  ASSERT_NE(block, nullptr);
  std::memset(block, 1, bytes);
  // The block may begin in memory that stood ready, and the janitor may populate more: half is beyond doubt.
  const std::uint64_t with_block = statistics().resident;
  EXPECT_GE(with_block, before + bytes / 2);
  by_free(block);
  by_heap_trim();
  EXPECT_LE(statistics().resident, with_block - bytes / 2);
}

TEST(Janitor, trim_gives_everything_free_back_at_once) {
  ASSERT_EQ(by_heap_prefault(std::size_t{64} << 20), 0);
  EXPECT_GE(by_heap_trim(), std::size_t{60} << 20);
  void* const block = by_calloc(1, 1'000'000);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(static_cast<unsigned char*>(block)[999'999], 0);
  by_free(block);
  EXPECT_EQ(by_heap_check(), nullptr);
}

}  // namespace
