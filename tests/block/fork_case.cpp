// A process forks while other threads make pools of their own. A separate program, which uses no static pool: those
// have a part of their own in what happens around a fork.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "blockyard/block_allocator.hpp"
#include "expect.hpp"

namespace {

bool allocates(int count) {
  blockyard::BlockAllocator blocks(4000, 8);
  bool all = true;
  for (int i = 0; i < count; ++i) {
    all = blocks.allocate() != nullptr && all;
  }
  return all;
}

}  // namespace

int main() {
  constexpr unsigned most_seconds = 10;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&] {
      while (!stop) {
        allocates(40);
      }
    });
  }
  for (int round = 0; round < 300; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(most_seconds);
      _exit(allocates(1) ? 0 : 1);
    }
    int status = -1;
    expect(waitpid(child, &status, 0) == child && status == 0, "a forked child allocates");
  }
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  return 0;
}
