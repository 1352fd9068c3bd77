// Why: servers have hundreds of threads, each of which uses some blocks of many sizes. What each holds must be near
// what it touches: whole slabs for every size would be half a megabyte a thread.
#include <pthread.h>

#include <vector>

#include "behaviour.hpp"

namespace {

constexpr std::size_t kib = 1024;
pthread_barrier_t allocated;
pthread_barrier_t measured;

void* use_every_size(void*) {
  std::vector<void*> blocks;
  for (std::size_t size = 16; size <= 8192; size += size < 128 ? 16 : size / 4) {
    blocks.push_back(std::memset(std::malloc(size), 1, 8));
  }
  pthread_barrier_wait(&allocated);
  pthread_barrier_wait(&measured);
  for (void* const block : blocks) {
    std::free(block);
  }
  return nullptr;
}

std::size_t resident_with(unsigned threads) {
  std::vector<pthread_t> all(threads);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 * kib);
  pthread_barrier_init(&allocated, nullptr, threads + 1);
  pthread_barrier_init(&measured, nullptr, threads + 1);
  for (pthread_t& each : all) {
    behaviour::require(pthread_create(&each, &attributes, use_every_size, nullptr) == 0, "no thread starts");
  }
  pthread_barrier_wait(&allocated);
  const std::size_t bytes = behaviour::resident_bytes();
  pthread_barrier_wait(&measured);
  for (const pthread_t each : all) {
    pthread_join(each, nullptr);
  }
  return bytes;
}

}  // namespace

int main() {
  constexpr unsigned some = 100;
  constexpr unsigned more = 400;
  const std::size_t before = resident_with(some);
  const std::size_t after = resident_with(more);
  const std::size_t each = after > before ? (after - before) / (more - some) : 0;
  std::printf("%zu KiB a thread\n", each / kib);
  behaviour::require(each <= 320 * kib, "a thread that uses a block of each size holds whole slabs");
  behaviour::require_sound_heap();
}
