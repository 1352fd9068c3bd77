// What the workloads share: the allocator under test, and a cheap source of sizes.
#pragma once

#include <pthread.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "blockyard/adapter.h"

namespace bench {

inline const by_adapter* adapter = nullptr;
inline pthread_mutex_t adapter_lock = PTHREAD_MUTEX_INITIALIZER;
inline bool locked = false;

/// One block. Its size is written into it: what a program would do with a block at the least, and what an allocator
/// that wants the size back gets it.
inline void* allocate(std::uint32_t size) {
  void* block;
  if (locked) {
    pthread_mutex_lock(&adapter_lock);
    block = adapter->allocate(size);
    pthread_mutex_unlock(&adapter_lock);
  } else {
    block = adapter->allocate(size);
  }
  std::memcpy(block, &size, sizeof size);
  return block;
}

inline void release(void* block) {
  std::uint32_t size;
  std::memcpy(&size, block, sizeof size);
  if (locked) {
    pthread_mutex_lock(&adapter_lock);
  }
  if ((adapter->flags & BY_ADAPTER_SIZED_FREE) != 0) {
    adapter->free_sized(block, size, 16);
  } else {
    adapter->free(block);
  }
  if (locked) {
    pthread_mutex_unlock(&adapter_lock);
  }
}

inline void thread_start() {
  if (adapter->thread_start != nullptr) {
    adapter->thread_start();
  }
}
inline void thread_stop() {
  if (adapter->thread_stop != nullptr) {
    adapter->thread_stop();
  }
}

/// Marsaglia's xorshift64: "Xorshift RNGs", 2003.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
  std::uint32_t below(std::uint32_t limit) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::uint32_t>((state_ >> 32) * limit >> 32);
  }

 private:
  std::uint64_t state_;
};

inline std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

/// Sizes as small objects have them: most of them below 128 bytes.
inline std::uint32_t small_size(Random& random) {
  const std::uint32_t kind = random.below(16);
  return 16 + (kind < 10 ? random.below(112) : kind < 15 ? random.below(500) : random.below(2'000));
}

/// Workloads print `NAME VALUE` lines. False: there is no workload of that name.
bool run_single(const char* workload);
bool run_loads(const char* workload);
bool run_threads(const char* workload, unsigned threads, double seconds);
bool run_waits(const char* workload, double seconds);

}  // namespace bench
