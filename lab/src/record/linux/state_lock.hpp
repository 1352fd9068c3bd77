// The lock of the process's state, and how the recorder waits: for what begins and ends a recording and for what takes
// part in it.
#pragma once

#include <cstdint>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/linux/recorder.hpp"

namespace blockyard::record {

inline void pause_ns(long ns) {
  const timespec time{0, ns};
  nanosleep(&time, nullptr);
}

/// Sleeps on a futex that other processes may share; until it is woken, or half a second has passed.
template <typename Word>
void sleep_on(Word& word, std::uint32_t while_it_is) {
  const timespec most{0, 500'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, while_it_is, &most, nullptr, 0);
}

class StateLock {
 public:
  explicit StateLock(ProcessState& state) : state_(state) {
    if (__atomic_exchange_n(&state_.lock, 1u, __ATOMIC_ACQUIRE) == 0) return;
    while (__atomic_exchange_n(&state_.lock, 2u, __ATOMIC_ACQUIRE) != 0) sleep_on(state_.lock, 2);
  }
  /// For a thread inside the recorder: not held where the recording `key` ends meanwhile. Who ends it has the lock and
  /// waits until such threads have left.
  StateLock(ProcessState& state, std::uint64_t key) : state_(state) {
    for (;;) {
      std::uint32_t free = 0;
      is_held_ = __atomic_compare_exchange_n(&state_.lock, &free, 1u, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
      const bool goes_on = __atomic_load_n(&state_.hooks_key, __ATOMIC_ACQUIRE) == key ||
                           __atomic_load_n(&state_.engine_key, __ATOMIC_ACQUIRE) == key;
      if (is_held_ || !goes_on) return;
      pause_ns(20'000);
    }
  }
  ~StateLock() {
    if (is_held_ && __atomic_exchange_n(&state_.lock, 0u, __ATOMIC_RELEASE) == 2)
      syscall(SYS_futex, &state_.lock, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;

  [[nodiscard]] bool is_held() const { return is_held_; }

 private:
  ProcessState& state_;
  bool is_held_ = true;
};

}  // namespace blockyard::record
