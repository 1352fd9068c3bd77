// Threads that start and end, frees on other threads, and fork.
#include <gtest/gtest.h>

#include <pthread.h>
#if __has_include(<sys/prctl.h>)
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <atomic>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "blockyard/lifetime.hpp"
#include "blockyard/rewindable.hpp"
#include "own_thread.hpp"
#include "statistics.hpp"

namespace {

using namespace blockyard;

TEST(Threads, a_thread_that_ends_in_the_middle_of_a_frame_gives_everything_of_temp_back) {
  const std::size_t before = used_bytes();
  for (int i = 0; i < 50; ++i) {
    on_a_new_thread([] {
      static_cast<void>(temp_allocate(1000, 16));
      static_cast<void>(temp_allocate(std::size_t{1} << 20, 16));  // does not fit
    });
  }
  EXPECT_EQ(used_bytes(), before);
}

// ThreadSanitizer has forgotten the thread by its last round, and MinGW has no rounds.
#if !defined(__SANITIZE_THREAD__) && __has_include(<sys/prctl.h>)
// POSIX calls this again as long as it sets a value, in at least four rounds, and in the last one after the lifetimes'
// own: nobody tells them of what they give here.
pthread_key_t allocates_in_all_rounds;
std::set<void*> last_regions;
void allocate_and_ask_again(void* rounds) {
  void* const block = temp_allocate(1000, 16);
  static_cast<void>(temp_allocate(std::size_t{1} << 20, 16));  // does not fit
  deallocate(allocate(16, 16, Lifetime::temp_job), Lifetime::temp_job);
  ++*static_cast<int*>(rounds);
  if (*static_cast<int*>(rounds) == PTHREAD_DESTRUCTOR_ITERATIONS) {
    last_regions.insert(block);
  }
  pthread_setspecific(allocates_in_all_rounds, rounds);
}

TEST(Threads, destructors_that_allocate_in_a_threads_last_round_leave_nothing_behind) {
  by_lifetime_prepare();  // the lifetimes have their key before this one is made
  ASSERT_EQ(pthread_key_create(&allocates_in_all_rounds, allocate_and_ask_again), 0);
  std::size_t used = 0;
  for (int i = 0; i < 50; ++i) {
    int rounds = 0;
    on_a_new_thread([&] { pthread_setspecific(allocates_in_all_rounds, &rounds); });
    ASSERT_GE(rounds, PTHREAD_DESTRUCTOR_ITERATIONS);
    used = i == 4 ? used_bytes() : used;
  }
  EXPECT_LE(last_regions.size(), 3u);
  EXPECT_LE(used_bytes(), used);
  pthread_key_delete(allocates_in_all_rounds);
}
#endif

TEST(Threads, what_a_thread_allocated_as_temp_job_outlives_it) {
  char* block = nullptr;
  on_a_new_thread([&] {
    block = static_cast<char*>(allocate(16, 16, Lifetime::temp_job));
    std::strcpy(block, "outlives");
  });
  EXPECT_STREQ(block, "outlives");
  deallocate(block, Lifetime::temp_job);
}

TEST(Threads, producers_and_consumers_free_each_others_blocks) {
  constexpr int rounds = 20'000;
  std::mutex lock;
  std::vector<unsigned*> waiting;
  std::atomic<int> producing{2};
  std::atomic<int> wrong{0};
  const std::size_t before = used_bytes();
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < rounds; ++i) {
        auto* const block =
            static_cast<unsigned*>(allocate(8 + static_cast<std::size_t>(i % 200), 8, Lifetime::temp_job));
        block[0] = t;
        block[1] = ~t;
        const std::lock_guard guard(lock);
        waiting.push_back(block);
      }
      producing.fetch_sub(1);
    });
    threads.emplace_back([&] {
      for (;;) {
        const bool last = producing.load() == 0;
        std::vector<unsigned*> taken;
        {
          const std::lock_guard guard(lock);
          taken.swap(waiting);
        }
        for (unsigned* block : taken) {
          wrong += block[1] != ~block[0];
          deallocate(block, Lifetime::temp_job);
        }
        if (last && taken.empty()) {
          return;
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(used_bytes(), before);
}

TEST(Threads, statistics_are_read_while_threads_end_their_frames) {
  std::atomic<bool> stop{false};
  std::atomic<bool> started{false};
  std::thread worker([&] {
    while (!stop.load()) {
      static_cast<void>(temp_allocate(100, 16));
      by_thread_end_frame();
      started.store(true);
    }
  });
  while (!started.load()) {
    std::this_thread::yield();
  }
  by_lifetime_statistics all;
  for (int i = 0; i < 1000; ++i) {
    by_lifetime_get_statistics(&all);
  }
  stop.store(true);
  worker.join();
  EXPECT_GE(all.threads, 1u);
}

#if !defined(__SANITIZE_THREAD__) && __has_include(<sys/prctl.h>)
// Forks while another thread repeats an operation. Whether the child can do the same and exits.
template <class Other>
bool forks_well(Other&& other) {
  std::atomic<bool> stop{false};
  std::atomic<bool> started{false};
  std::thread thread([&] {
    while (!stop.load()) {
      other();
      started.store(true);
    }
  });
  while (!started.load()) {
    std::this_thread::yield();
  }
  bool well = true;
  for (int i = 0; i < 100 && well; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // one that waits for a lock that nobody holds ends with the test
      other();
      std::thread([] { std::memset(temp_allocate(64, 16), 1, 64); }).join();
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    well = status == 0;
  }
  stop.store(true);
  thread.join();
  return well;
}

TEST(Threads, a_process_forks_while_another_thread_sets_regions) {
  EXPECT_TRUE(forks_well([] { by_temp_configure(std::size_t{256} << 10, std::size_t{4} << 20); }));
}

TEST(Threads, a_process_forks_while_another_thread_reads_statistics) {
  EXPECT_TRUE(forks_well([] { statistics(); }));
}

TEST(Threads, a_process_forks_while_another_thread_uses_an_arena) {
  rewindable arena(4096);
  static_cast<void>(arena.try_allocate(1000));
  EXPECT_TRUE(forks_well([&] { static_cast<void>(arena.statistics()); }));
}

TEST(Threads, a_forked_child_allocates_ends_frames_and_does_not_report_its_parents_blocks) {
  by_leaks_set(BY_LEAKS_ON);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop.load()) {
      deallocate(allocate(64, 16, Lifetime::temp_job), Lifetime::temp_job);
      static_cast<void>(temp_allocate(64, 16));
      by_thread_end_frame();
    }
  });
  void* const of_parent = allocate(64, 16, Lifetime::temp_job);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const std::uint64_t before = by_leaks_reported();
      for (int frame = 0; frame < 10; ++frame) {
        std::memset(temp_allocate(100, 16), 1, 100);
        deallocate(allocate(64, 16, Lifetime::temp_job), Lifetime::temp_job);
        by_frame_end(0);
      }
      deallocate(of_parent, Lifetime::temp_job);
      _exit(by_leaks_reported() == before ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  stop.store(true);
  other.join();
  deallocate(of_parent, Lifetime::temp_job);
  by_leaks_set(BY_LEAKS_OFF);
}
#endif

struct UsesTempWhenItsThreadEnds {
  ~UsesTempWhenItsThreadEnds() {
    std::memset(temp_allocate(100, 16), 1, 100);
    deallocate(allocate(64, 16, Lifetime::temp_job), Lifetime::temp_job);
  }
  int used = 0;
};

TEST(Threads, destructors_of_thread_locals_may_allocate) {
  on_a_new_thread([] {
    thread_local UsesTempWhenItsThreadEnds late;
    late.used = 1;
    static_cast<void>(temp_allocate(16, 16));
  });
}

}  // namespace
