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
  // The consumer's heap keeps up to twelve blocks of a size class at hand, whoever allocated them.
  constexpr std::uint64_t at_hand = 56 * 12;
  behaviour::require(
      statistics.remote_frees_adopted + statistics.remote_frees_waiting + at_hand >= std::uint64_t{batch} * rounds,
      "blocks that another thread freed were lost");
  // At most three batches of 266 KB are ever live; all else is room that was not recycled.
  behaviour::require(statistics.used <= (std::uint64_t{6} << 20), "memory grew while another thread freed");
}
