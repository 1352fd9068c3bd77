// Why: producer and consumer. A million blocks freed by a thread that did not allocate them must all come back to their
// owner, and memory must not grow while they do. And a level that another thread frees, while its owner plays on, must
// not leave its last blocks in that thread's cache, each alone in a slab.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "behaviour.hpp"

namespace {

constexpr std::size_t batch = 1000;
constexpr int rounds = 1000;
std::atomic<std::vector<void*>*> slot{nullptr};

void producer_and_consumer() {
  std::thread consumer([] {
    for (int round = 0; round < rounds; ++round) {
      std::vector<void*>* blocks = nullptr;
      while ((blocks = slot.exchange(nullptr, std::memory_order_acquire)) == nullptr) {
        std::this_thread::yield();
      }
      for (void* block : *blocks) {
        std::free(block);
      }
      delete blocks;
    }
  });
  for (int round = 0; round < rounds; ++round) {
    auto* const blocks = new std::vector<void*>(batch);
    for (std::size_t i = 0; i < batch; ++i) {
      (*blocks)[i] = std::malloc(16 + i % 500);
    }
    while (slot.load(std::memory_order_relaxed) != nullptr) {
      std::this_thread::yield();
    }
    slot.store(blocks, std::memory_order_release);
  }
  consumer.join();
  behaviour::require_sound_heap();
  const by_heap_statistics statistics = behaviour::statistics();
  // The last blocks wait in a cache, in the depot or in lists of their slabs; none of them counts as live. What does: a
  // few of the C++ library's own.
  behaviour::require(statistics.live <= (std::uint64_t{256} << 10), "blocks that another thread freed were lost");
  // At most three batches of 266 KB are ever live; all else is room that was not recycled.
  behaviour::require(statistics.used <= (std::uint64_t{6} << 20), "memory grew while another thread freed");
}

void level_freed_by_another_thread() {
  std::mt19937 random(1);
  const auto block = [&] { return std::malloc(16 + random() % 2000); };
  std::vector<void*> level(100'000);  // 100 MiB
  std::generate(level.begin(), level.end(), block);
  std::shuffle(level.begin(), level.end(), random);
  std::atomic<bool> freed{false};
  std::atomic<bool> ended{false};
  std::thread other([&] {
    std::for_each(level.begin(), level.end(), std::free);
    freed.store(true);
    ended.wait(false);
  });
  const auto stays = [] {
    const by_heap_statistics statistics = behaviour::statistics();
    return statistics.used - statistics.live > (std::uint64_t{5} << 20);
  };
  std::vector<void*> play(3'000);  // 3 MiB, which keep every class wanted
  // Two seconds; where the machine is busy, the heap's own thread may get its turns later.
  for (int frame = 0; frame < 400 || !freed.load() || (stays() && frame < 6'000); ++frame) {
    for (void*& each : play) {
      std::free(each);
      each = block();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  behaviour::require(!stays(), "blocks of a freed level stay in the cache of the thread that freed them");
  ended.store(true);
  ended.notify_one();
  other.join();
  std::for_each(play.begin(), play.end(), std::free);
}

}  // namespace

int main() {
  producer_and_consumer();
  level_freed_by_another_thread();
}
