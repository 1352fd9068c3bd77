// Why: producer and consumer. A million blocks freed by a thread that did not allocate them must all come back to their
// owner, and memory must not grow while they do.
#include <atomic>
#include <thread>
#include <vector>

#include "behaviour.hpp"

namespace {

constexpr std::size_t batch = 1000;
constexpr int rounds = 1000;
std::atomic<std::vector<void*>*> slot{nullptr};

}  // namespace

int main() {
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
