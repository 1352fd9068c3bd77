// Why: fork copies one thread and every lock as it stands. A child must be able to allocate, free, start threads and
// fork again, whatever the other threads were in the middle of.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "behaviour.hpp"

namespace {

std::atomic<bool> stop{false};

void churn(unsigned seed) {
  std::vector<void*> live(200);
  while (!stop.load(std::memory_order_relaxed)) {
    seed = seed * 1664525u + 1013904223u;
    void*& place = live[(seed >> 8) % live.size()];
    std::free(place);
    place = std::malloc((seed >> 16) % ((seed >> 30) == 0 ? 200000 : 600));
  }
  for (void* block : live) {
    std::free(block);
  }
}

int child() {
  for (int i = 0; i < 2000; ++i) {
    std::free(std::malloc(static_cast<std::size_t>(i * 31 % 70000)));
  }
  std::thread([] { std::free(std::malloc(100000)); }).join();
  const pid_t grandchild = fork();
  if (grandchild == 0) {
    std::free(std::malloc(64));
    _exit(0);
  }
  int status = 1;
  waitpid(grandchild, &status, 0);
  return status == 0 ? 0 : 1;
}

}  // namespace

int main() {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) {
    threads.emplace_back(churn, i + 1);
  }
  for (int round = 0; round < 60; ++round) {
    const pid_t pid = fork();
    behaviour::require(pid >= 0, "fork failed");
    if (pid == 0) {
      alarm(20);  // a deadlock must fail the test, not hang it
      _exit(child());
    }
    int status = 1;
    waitpid(pid, &status, 0);
    behaviour::require(status == 0, "a forked child could not allocate");
  }
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  behaviour::require_sound_heap();
}
