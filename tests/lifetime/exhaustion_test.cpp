// When memory runs out, every lifetime fails with ENOMEM, and works again when there is memory.
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "blockyard/lifetime.hpp"
#include "blockyard/rewindable.hpp"

namespace {

using namespace blockyard;

// Runs `body` in a child whose address space may grow by 64 MiB. Its result is the exit code.
template <class Body>
int in_little_memory(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    std::size_t pages = 0;
    FILE* const file = fopen("/proc/self/statm", "r");
    if (file == nullptr || fscanf(file, "%zu", &pages) != 1) {
      _exit(99);
    }
    fclose(file);
    const rlim_t limit = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{64} << 20);
    const rlimit limits{limit, limit};
    setrlimit(RLIMIT_AS, &limits);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

TEST(Exhaustion, temp_job_fails_with_enomem_and_serves_again_after_frees) {
  EXPECT_EQ(in_little_memory([] {
              static void* blocks[2000];
              int count = 0;
              while (count < 2000 && (blocks[count] = allocate(100'000, 16, Lifetime::temp_job)) != nullptr) {
                ++count;
              }
              if (count == 0 || count == 2000 || errno != ENOMEM) {
                return 1;
              }
              for (int i = 0; i < count; ++i) {
                deallocate(blocks[i], Lifetime::temp_job);
              }
              return allocate(100'000, 16, Lifetime::temp_job) != nullptr ? 0 : 2;
            }),
            0);
}

TEST(Exhaustion, temp_fails_with_enomem_and_serves_again_in_the_next_frame) {
  EXPECT_EQ(in_little_memory([] {
              for (int frame = 0; frame < 3; ++frame) {
                int count = 0;
                while (count < 2000 && temp_allocate(100'000, 16) != nullptr) {
                  ++count;
                }
                if (count == 0 || count == 2000 || errno != ENOMEM) {
                  return 1;
                }
                by_thread_end_frame();
              }
              return 0;
            }),
            0);
}

TEST(Exhaustion, an_arena_fails_with_enomem_and_serves_again_after_its_rewind) {
  EXPECT_EQ(in_little_memory([] {
              rewindable arena;
              int count = 0;
              while (count < 2000 && arena.try_allocate(100'000) != nullptr) {
                ++count;
              }
              if (count == 0 || count == 2000 || errno != ENOMEM) {
                return 1;
              }
              arena.rewind();
              return arena.try_allocate(100'000) != nullptr ? 0 : 2;
            }),
            0);
}

TEST(Exhaustion, an_arena_that_cannot_give_a_large_block_goes_on_with_the_memory_it_has) {
  EXPECT_EQ(in_little_memory([] {
              rewindable arena;
              auto* const first = static_cast<std::byte*>(arena.try_allocate(16, 8));
              for (int i = 0; i < 3; ++i) {
                if (first == nullptr || arena.try_allocate(std::size_t{1} << 40) != nullptr || errno != ENOMEM) {
                  return 1;
                }
              }
              return arena.try_allocate(16, 8) == first + 16 ? 0 : 2;
            }),
            0);
}

#endif

}  // namespace
