// Why: fork copies one thread and every lock as it stands. A child must be able to allocate, free, start threads and
// fork again, whatever the other threads were in the middle of; and without a janitor it must be able to do its work at
// the end of a frame, also when the parent's was in the middle of it. The memory that somebody was populating or giving
// back then must not be lost to it.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "behaviour.hpp"

#pragma weak by_heap_frame_end
#pragma weak by_heap_reserve
#pragma weak by_heap_trim

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

// The janitor is in the middle of its work most of the time: what it has populated is given back at once.
void keep_janitor_busy() {
  by_heap_reserve(std::size_t{32} << 20);
  while (!stop.load(std::memory_order_relaxed)) {
    by_heap_trim();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  by_heap_reserve(0);
}

bool frame_end_does_the_janitors_work() {
  constexpr std::size_t reserve = std::size_t{8} << 20;
  by_heap_set(BY_HEAP_JANITOR, 0);  // first: the child's own janitor would be in its last round
  by_heap_reserve(reserve);
  by_heap_trim();
  by_heap_frame_end(~std::uint64_t{0});  // until it is done
  return behaviour::statistics().ready >= reserve;
}

// What is neither used nor ready can all be given back, but for short runs: mostly less than 1 MiB of them. What is
// populated at a time and would be lost is 2 MiB.
bool nothing_is_in_work() {
  by_heap_reserve(0);
  by_heap_trim();
  const by_heap_statistics now = behaviour::statistics();
  return now.committed < now.used + now.ready + (std::uint64_t{2} << 20);
}

int child() {
  if (!frame_end_does_the_janitors_work()) {
    return 2;
  }
  if (!nothing_is_in_work()) {
    return 3;
  }
  for (int i = 0; i < 2000; ++i) {
    std::free(std::malloc(static_cast<std::size_t>(i * 31 % 70000)));
  }
  std::thread([] { std::free(std::malloc(100000)); }).join();
  const pid_t grandchild = fork();
  if (grandchild == 0) {
    behaviour::end_with_parent();
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
  threads.emplace_back(keep_janitor_busy);
  for (int round = 0; round < 60; ++round) {
    const pid_t pid = fork();
    behaviour::require(pid >= 0, "fork failed");
    if (pid == 0) {
      behaviour::end_with_parent();
      _exit(child());
    }
    int status = 1;
    waitpid(pid, &status, 0);
    behaviour::require(status != 2 << 8, "in a forked child the end of a frame no longer does the janitor's work");
    behaviour::require(status != 3 << 8, "what was in work at a fork is lost to the child");
    behaviour::require(status == 0, "a forked child could not allocate");
  }
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  behaviour::require_sound_heap();
}
