// What a process finds out once.
#pragma once

#include <atomic>

namespace blockyard::base {

/// Keeps the answer to a question that has one answer per process. Threads that ask at the same time may all look. A
/// static variable's guard would make the others wait, and a child for ever that was forked meanwhile.
template <class T>
class Once {
 public:
  template <class Find>
  T get(Find find) {
    if (!known_.load(std::memory_order_acquire)) [[unlikely]] {
      answer_.store(find(), std::memory_order_relaxed);
      known_.store(true, std::memory_order_release);
    }
    return answer_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<T> answer_{};
  std::atomic<bool> known_{false};
};

}  // namespace blockyard::base
