// The heap for as long as its argument says, in seconds: threads that hand their blocks to the next one (larson), pairs
// that exchange blocks through a table, and producers whose blocks consumers free. Each block says what it is; between
// rounds the invariant walker looks at the whole heap.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "blockyard/heap.h"

namespace {

constexpr unsigned workers = 4;

[[noreturn]] void fail(const char* what) {
  std::printf("FAILED: %s\n", what);
  std::fflush(stdout);
  std::_Exit(1);
}

void* make(std::mt19937& random) {
  const std::size_t size = 16 + (random() % 100 != 0 ? random() % 1'000 : random() % 400'000);
  auto* const block = static_cast<unsigned char*>(by_malloc(size));
  if (block == nullptr) fail("an allocation failed");
  const std::uint64_t note[2] = {size, reinterpret_cast<std::uintptr_t>(block) ^ size};
  std::memcpy(block, note, sizeof note);
  if (size > sizeof note) block[size - 1] = static_cast<unsigned char>(size);
  return block;
}

void end(void* block) {
  if (block == nullptr) return;
  std::uint64_t note[2];
  std::memcpy(note, block, sizeof note);
  if (note[1] != (reinterpret_cast<std::uintptr_t>(block) ^ note[0])) fail("a live block was overwritten");
  if (note[0] > sizeof note && static_cast<unsigned char*>(block)[note[0] - 1] != static_cast<unsigned char>(note[0])) {
    fail("a live block's end was overwritten");
  }
  by_free(block);
}

// Each round's threads get the blocks of those before, which have ended.
void larson(std::vector<void*>& blocks, std::mt19937& random) {
  for (int i = 0; i < 20'000; ++i) {
    void*& block = blocks[random() % blocks.size()];
    end(block);
    block = make(random);
  }
}

std::array<std::atomic<void*>, 512> table;

void exchange(std::mt19937& random) {
  for (int i = 0; i < 20'000; ++i) end(table[random() % table.size()].exchange(make(random)));
}

std::array<std::array<std::atomic<void*>, 256>, workers / 2> queues;

void produce(std::array<std::atomic<void*>, 256>& queue, std::mt19937& random) {
  for (int i = 0; i < 20'000; ++i) {
    std::atomic<void*>& place = queue[static_cast<std::size_t>(i) % queue.size()];
    while (place.load(std::memory_order_acquire) != nullptr) std::this_thread::yield();
    place.store(make(random), std::memory_order_release);
  }
}

void consume(std::array<std::atomic<void*>, 256>& queue) {
  for (int i = 0; i < 20'000; ++i) {
    std::atomic<void*>& place = queue[static_cast<std::size_t>(i) % queue.size()];
    void* block = nullptr;
    while ((block = place.exchange(nullptr, std::memory_order_acquire)) == nullptr) std::this_thread::yield();
    end(block);
  }
}

template <class Work>
void on_threads(Work&& work) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < workers; ++i) threads.emplace_back([&, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 5;
  const auto begun = std::chrono::steady_clock::now();
  std::array<std::vector<void*>, workers> kept;
  for (auto& blocks : kept) blocks.resize(1'000);
  unsigned rounds = 0;
  for (; std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count() < seconds; ++rounds) {
    std::array<std::mt19937, workers> random;
    for (unsigned i = 0; i < workers; ++i) random[i].seed(rounds * workers + i);
    on_threads([&](unsigned i) { larson(kept[(i + rounds) % workers], random[i]); });
    on_threads([&](unsigned i) { exchange(random[i]); });
    on_threads([&](unsigned i) { i % 2 == 0 ? produce(queues[i / 2], random[i]) : consume(queues[i / 2]); });
    if (const char* const broken = by_heap_check(); broken != nullptr) fail(broken);
  }
  for (auto& blocks : kept) {
    for (void* block : blocks) end(block);
  }
  for (auto& place : table) end(place.exchange(nullptr));
  by_heap_statistics statistics;
  by_heap_get_statistics(&statistics);
  std::printf("%u rounds, %llu bytes live at the end, %llu committed\n", rounds,
              static_cast<unsigned long long>(statistics.live), static_cast<unsigned long long>(statistics.committed));
  return rounds == 0 ? 1 : 0;
}
