// Memory of blocks that died goes back to the system, whatever the program does then; what is in use stays as it is.
#include "block/give_back.hpp"

#include <gtest/gtest.h>

#if __has_include(<sys/wait.h>)
#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "base/pages.hpp"
#include "base/sanitizer.hpp"
#include "block/pool.hpp"
#include "blockyard/block_allocator.hpp"
#include "blockyard/static_block_allocator.hpp"
#include "watched.hpp"

namespace blockyard::block {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

// Piece by piece: qemu says nothing of a stretch with memory that may not be touched.
std::size_t resident() {
  const std::size_t piece = std::max(granule_bytes, base::page_size());
  const std::size_t bytes = std::size_t{window_fresh()} * granule_bytes;
  std::size_t sum = 0;
  for (std::size_t at = 0; at < bytes; at += piece) {
    sum += base::resident_bytes(by_block_window.base + at, piece);
  }
  return sum;
}

// Sleeps, as long as it takes. What may stay: the page with the slab in use.
void expect_given_back(std::size_t before) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (resident() > before + 5 * mib && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_LE(resident(), before + 5 * mib);
  EXPECT_TRUE(static_invariants_hold());
}

template <class Blocks>
std::vector<void*> take_much() {
  std::vector<void*> taken(40 * mib / Blocks::stride);
  for (void*& block : taken) {
    block = Blocks::allocate();
    std::memset(block, 1, Blocks::stride);
  }
  return taken;
}

template <class Blocks>
void free_each(const std::vector<void*>& taken) {
  for (void* const block : taken) {
    Blocks::deallocate(block);
  }
}

template <class Blocks>
void free_at_once(const std::vector<void*>& taken) {
  for (std::size_t i = 0; i + 1 < taken.size(); ++i) {
    set_chain_next(taken[i], taken[i + 1], Blocks::stride);
  }
  Blocks::free_chain(taken.front(), taken.back(), taken.size());
}

template <class Blocks>
void expect_usable() {
  free_each<Blocks>(take_much<Blocks>());
  EXPECT_TRUE(static_invariants_hold());
}

// Of what is freed at most so much is given back at once, as it may soon be needed again. Tried anew where a busy
// machine holds this thread up for longer. Under Wine a look takes as long as it stays.
template <class Take, class Free>
void expect_kept_at_first(std::size_t but_for, Take&& take, Free&& free) {
#if __has_include(<sys/wait.h>)
  bool is_kept = false;
  for (int tries = 0; tries < 50 && !is_kept; ++tries) {
    take();
    const std::size_t full = resident();
    free();
    is_kept = resident() + but_for >= full;
  }
  EXPECT_TRUE(is_kept);
#else
  static_cast<void>(but_for);
  take();
  free();
#endif
}

TEST(GiveBack, blocks_freed_in_any_order_while_the_program_sleeps) {
  SKIP_IF_WATCHED();
  using Blocks = StaticBlockAllocator<216, 8>;
  const std::size_t before = resident();
  std::vector<void*> taken;
  const auto take = [&] {
    taken = take_much<Blocks>();
    std::shuffle(taken.begin(), taken.end(), std::minstd_rand(1));
  };
  expect_kept_at_first(25 * mib, take, [&] { free_each<Blocks>(taken); });
  expect_given_back(before);
  expect_usable<Blocks>();
}

TEST(GiveBack, chains_that_nobody_takes) {
  SKIP_IF_WATCHED();
  using Blocks = StaticBlockAllocator<224, 8>;
  const std::size_t before = resident();
  std::vector<void*> taken;
  expect_kept_at_first(
      0, [&] { taken = take_much<Blocks>(); }, [&] { free_at_once<Blocks>(taken); });
  expect_given_back(before);
  EXPECT_EQ(Blocks::statistics().live_blocks, 0u);
  expect_usable<Blocks>();
}

TEST(GiveBack, blocks_freed_by_another_thread_than_the_one_that_sleeps) {
  SKIP_IF_WATCHED();
  using Blocks = StaticBlockAllocator<232, 8>;
  const std::size_t before = resident();
  const std::vector<void*> taken = take_much<Blocks>();
  std::thread(free_each<Blocks>, taken).join();
  expect_given_back(before);
  EXPECT_EQ(Blocks::statistics().live_blocks, 0u);
  expect_usable<Blocks>();
}

TEST(GiveBack, slabs_of_more_than_a_huge_page) {
  SKIP_IF_WATCHED();
  using Blocks = StaticBlockAllocator<(std::size_t{1} << 20) - 64, 8>;
  const std::size_t before = resident();
  free_each<Blocks>(take_much<Blocks>());
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (resident() > before + 9 * mib && std::chrono::steady_clock::now() < give_up) {  // one slab is in use
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_LE(resident(), before + 9 * mib);
  expect_usable<Blocks>();
}

TEST(GiveBack, a_pool_with_one_owner_that_was_reset) {
  SKIP_IF_WATCHED();
  const std::size_t before = resident();
  BlockAllocator pool(240, 8);
  const auto fill = [&] {
    for (std::size_t i = 0; i < 40 * mib / 240; ++i) {
      std::memset(pool.allocate(), 1, 240);
    }
  };
  expect_kept_at_first(25 * mib, fill, [&] { pool.reset(); });
  expect_given_back(before);
  fill();
}

// For as long as some looks take, at times when some slabs are about to go.
TEST(GiveBack, blocks_in_use_keep_what_they_hold) {
  SKIP_IF_WATCHED();
  using Blocks = StaticBlockAllocator<248, 8>;
  std::minstd_rand random(2);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2500);
  std::vector<void*> kept;
  while (std::chrono::steady_clock::now() < end) {
    const std::size_t count = 1000 + random() % (20 * mib / Blocks::stride);
    while (kept.size() < count) {
      kept.push_back(Blocks::allocate());
      std::memset(kept.back(), static_cast<int>(kept.size() % 251), Blocks::stride);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 300));
    std::vector<void*> gone;
    while (kept.size() > random() % count) {
      const auto* const block = static_cast<const unsigned char*>(kept.back());
      const auto mark = static_cast<unsigned char>(kept.size() % 251);
      ASSERT_EQ(std::count(block, block + Blocks::stride, mark), std::ptrdiff_t{Blocks::stride});
      gone.push_back(kept.back());
      kept.pop_back();
    }
    if (gone.empty()) {
      continue;
    }
    switch (random() % 3) {
      case 0:
        free_each<Blocks>(gone);
        break;
      case 1:
        free_at_once<Blocks>(gone);
        break;
      default:
        std::thread(free_each<Blocks>, gone).join();
    }
    ASSERT_TRUE(static_invariants_hold());
  }
  free_each<Blocks>(kept);
}

#if __has_include(<sys/wait.h>)
TEST(GiveBack, a_forked_child_goes_on_with_all_slabs) {
  SKIP_IF_WATCHED();
#if BLOCKYARD_SANITIZED
  GTEST_SKIP() << "skipped: ThreadSanitizer ends a forked child that starts a thread; run it in a release build";
#endif
  using Blocks = StaticBlockAllocator<256, 8>;
  for (int round = 0; round < 8; ++round) {
    const std::vector<void*> taken = take_much<Blocks>();
    round % 2 == 0 ? free_each<Blocks>(taken) : free_at_once<Blocks>(taken);
    std::this_thread::sleep_for(std::chrono::milliseconds(round * 100));
    const pid_t child = fork();
    if (child == 0) {
      const std::vector<void*> again = take_much<Blocks>();
      free_each<Blocks>(again);
      _exit(static_invariants_hold() ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

#if !BLOCKYARD_SANITIZED  // which has a thread of its own
int threads() {
  DIR* const tasks = opendir("/proc/self/task");
  int count = 0;
  while (const dirent* const task = readdir(tasks)) {
    count += task->d_name[0] != '.' ? 1 : 0;
  }
  closedir(tasks);
  return count;
}

using Large = StaticBlockAllocator<216, 8>;

// A child with a thread that gives back, which ends with what `run` returns.
template <class Run>
int in_a_child_that_gives_back(Run&& run) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    while (threads() == 1) {
      expect_usable<Large>();
      usleep(1000);
    }
    _exit(run());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(GiveBack, the_thread_counts_neither_for_a_namespace_nor_for_a_change_of_user_nor_for_a_fork) {
  SKIP_IF_WATCHED();
  EXPECT_EQ(in_a_child_that_gives_back([] { return unshare(CLONE_NEWUSER) == 0 || errno != EINVAL ? 0 : 1; }), 0);
  EXPECT_EQ(in_a_child_that_gives_back([] { return setuid(getuid()) == 0 && threads() == 1 ? 0 : 1; }), 0);
  EXPECT_EQ(in_a_child_that_gives_back([] {
              const pid_t child = fork();
              if (child == 0) {
                _exit(0);
              }
              const bool alone = threads() == 1;
              waitpid(child, nullptr, 0);
              while (threads() == 1) {  // it comes back
                expect_usable<Large>();
                usleep(1000);
              }
              return alone ? 0 : 1;
            }),
            0);
}

TEST(GiveBack, no_thread_starts_in_a_sandbox) {
  SKIP_IF_WATCHED();
  EXPECT_EQ(in_a_child_that_gives_back([] {
              std::vector<sock_filter> filter{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
              for (const int call : {SYS_clone, SYS_prctl, SYS_sched_setscheduler, SYS_rt_sigprocmask, SYS_getpid}) {
                filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
                filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
              }
              filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
              const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
              const bool allowed = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
              if (threads() != 1) {
                return 1;
              }
              if (!allowed || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
                return 0;  // the system has no sandbox
              }
              for (int turn = 0; turn < 10; ++turn) {
                expect_usable<Large>();
                usleep(10'000);
              }
              return threads() == 1 ? 0 : 1;
            }),
            0);
}
#endif
#endif

}  // namespace
}  // namespace blockyard::block
