// The checked heap's table of stacks, where several threads come with the same new stack at once. With a delay at every
// atomic operation, and under ThreadSanitizer.
#include "checks/report.hpp"

#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

using namespace blockyard::checks;

constexpr unsigned turns = 10;

// One stack for each value of the lowest `left` bits of `path`: a frame for each bit, in the one function or the other.
std::uint32_t go(unsigned path, unsigned left);
template <bool one>
[[gnu::noinline]] std::uint32_t turn(unsigned path, unsigned left) {
  const std::uint32_t stack = go(path, left);
  asm volatile("" ::"i"(one));  // no tail call, and not the same function as the other
  return stack;
}
[[gnu::always_inline]] inline std::uint32_t go(unsigned path, unsigned left) {
  return left == 0 ? keep_stack() : ((path & 1) != 0 ? turn<true> : turn<false>)(path >> 1, left - 1);
}

TEST(StacksOfTheCheckedHeap, a_thread_that_meets_anothers_new_stack_finds_all_its_frames) {
  start_stacks();
  start_stack_table();
  constexpr unsigned threads = 3;
  constexpr unsigned paths = 1u << turns;
  std::vector<std::array<Stack, paths>> found(threads);
  std::barrier<> next(threads);
  std::array<std::thread, threads> workers;
  for (unsigned worker = 0; worker < threads; ++worker) {
    workers[worker] = std::thread([&, worker] {
      for (unsigned path = 0; path < paths; ++path) {
        next.arrive_and_wait();
        found[worker][path] = kept_stack(go(path, turns));
      }
    });
  }
  for (std::thread& worker : workers) {
    worker.join();
  }
  for (unsigned path = 0; path < paths; ++path) {
    ASSERT_NE(found[0][path][turns], nullptr);
    for (unsigned worker = 1; worker < threads; ++worker) {
      EXPECT_EQ(found[0][path], found[worker][path]);
    }
    if (path > 0) {
      EXPECT_NE(found[0][path], found[0][path - 1]);
    }
  }
}

}  // namespace
