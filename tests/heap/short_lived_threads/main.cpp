// Why: job systems and servers start and end threads all the time. Two thousand of them, a few at once, must share a
// few heaps; memory that one left behind must serve the next.
#include <thread>
#include <vector>

#include "behaviour.hpp"

int main() {
  std::vector<void*> left;
  for (int round = 0; round < 500; ++round) {
    std::vector<void*> mine(4);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 4; ++i) {
      threads.emplace_back([&mine, i] {
        for (int k = 0; k < 200; ++k) {
          std::free(std::malloc(static_cast<std::size_t>(k * 7)));
        }
        mine[i] = std::malloc(100);  // freed by the main thread, after this one has ended
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    for (void* block : mine) {
      std::free(block);
    }
  }
  behaviour::require_sound_heap();
  const by_heap_statistics statistics = behaviour::statistics();
  behaviour::require(statistics.heaps <= 16, "two thousand threads, four at a time, made more than 16 heaps");
  behaviour::require(statistics.used <= (std::uint64_t{8} << 20), "short-lived threads left more than 8 MiB behind");
}
