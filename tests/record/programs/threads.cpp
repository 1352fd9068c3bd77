// Producers allocate, consumers free what others allocated, through one queue each; counts are exact. Threads name
// themselves, and many short ones follow one another.
#include <pthread.h>
#include <sys/prctl.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int pairs = 3;
constexpr int blocks_each = 30'000;
constexpr int short_threads = 60;

struct Exchange {
  std::atomic<void*> slots[64]{};
};
Exchange exchanges[pairs];

void produce(int number) {
  pthread_setname_np(pthread_self(), ("producer " + std::to_string(number)).c_str());
  for (int i = 0; i < blocks_each; ++i) {
    void* block = std::malloc(130'000 + static_cast<std::size_t>(number));
    std::atomic<void*>& slot = exchanges[number].slots[i % 64];
    void* empty = nullptr;
    while (!slot.compare_exchange_weak(empty, block)) {
      empty = nullptr;
      std::this_thread::yield();
    }
  }
}

void consume(int number) {
  prctl(PR_SET_NAME, ("consumer " + std::to_string(number)).c_str());
  for (int i = 0; i < blocks_each; ++i) {
    void* block = nullptr;
    while ((block = exchanges[number].slots[i % 64].exchange(nullptr)) == nullptr) std::this_thread::yield();
    std::free(block);
  }
}

}  // namespace

int main() {
  std::vector<std::thread> threads;
  for (int i = 0; i < pairs; ++i) {
    threads.emplace_back(produce, i);
    threads.emplace_back(consume, i);
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < short_threads; ++i) {
    std::thread([] {
      void* volatile block = std::malloc(140'000);
      std::free(block);
    }).join();
  }
  return 0;
}
