// std::atomic with a random delay around every operation: only for tests (base/atomic.hpp).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/pages.hpp"
#include "base/threads.hpp"

namespace blockyard::base {

/// Mostly nothing; one time in 8 a spin of up to 255 pauses, one in 128 the processor is given away.
inline void delay() {
  // Each thread has a sequence of its own, from the address of its variable: no lock and no shared counter, which would
  // order the very operations that are to be disturbed.
  thread_local std::uint64_t state = reinterpret_cast<std::uintptr_t>(&state) * 0x9E3779B97F4A7C15u | 1;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  const auto dice = static_cast<std::uint32_t>(state >> 32);
  if (dice % 128 == 0) {
    yield_thread();
  } else if (dice % 8 == 0) {
    for (std::uint32_t left = (dice >> 8) & 255; left > 0; --left) {
      pause();
    }
  }
}

template <class T>
class DelayedAtomic {
 public:
  constexpr DelayedAtomic() = default;
  constexpr DelayedAtomic(T value) : value_(value) {}  // NOLINT(google-explicit-constructor): as std::atomic
  DelayedAtomic(const DelayedAtomic&) = delete;
  DelayedAtomic& operator=(const DelayedAtomic&) = delete;

  T load(std::memory_order order = std::memory_order_seq_cst) const {
    return disturbed([&] { return value_.load(order); });
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) {
    disturbed([&] {
      value_.store(value, order);
      return 0;
    });
  }
  T exchange(T value, std::memory_order order = std::memory_order_seq_cst) {
    return disturbed([&] { return value_.exchange(value, order); });
  }
  T fetch_add(T value, std::memory_order order = std::memory_order_seq_cst) {
    return disturbed([&] { return value_.fetch_add(value, order); });
  }
  T fetch_sub(T value, std::memory_order order = std::memory_order_seq_cst) {
    return disturbed([&] { return value_.fetch_sub(value, order); });
  }
  T fetch_or(T value, std::memory_order order = std::memory_order_seq_cst) {
    return disturbed([&] { return value_.fetch_or(value, order); });
  }
  T fetch_and(T value, std::memory_order order = std::memory_order_seq_cst) {
    return disturbed([&] { return value_.fetch_and(value, order); });
  }
  bool compare_exchange_weak(T& expected, T wanted, std::memory_order success,
                             std::memory_order failure = std::memory_order_relaxed) {
    return disturbed([&] { return value_.compare_exchange_weak(expected, wanted, success, failure); });
  }
  bool compare_exchange_strong(T& expected, T wanted, std::memory_order success,
                               std::memory_order failure = std::memory_order_relaxed) {
    return disturbed([&] { return value_.compare_exchange_strong(expected, wanted, success, failure); });
  }

 private:
  template <class Operation>
  static auto disturbed(Operation&& operation) {
    delay();
    const auto result = operation();
    delay();
    return result;
  }

  std::atomic<T> value_{};
};

}  // namespace blockyard::base
