// The lock of the page heap. Below the memory limit it is held for tens of instructions, so a thread that finds it
// taken spins for a while before it parks: parking costs both sides a system call.
//
// Unlocking a mutex of the C library is an atomic read-modify-write, which waits until every store before it has got
// its cache line; the stores here are to tags of pages, which are cold. So unlocking is a plain store, and only then
// reads whether somebody waits. That read may come too early: then nobody wakes a thread that just went to sleep, which
// is why it sleeps for a bounded time only.
//
// Bound: 64 spins with a pause each, some microseconds, then it parks: the holder has lost its processor. A lost
// wake-up costs longest_sleep_ns.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/threads.hpp"

namespace blockyard::pages {

template <class Atomics = base::StandardAtomics>
class BasicPageLock {
 public:
  void lock() {
    if (!try_lock()) [[unlikely]] {
      wait_for_it();
    }
  }
  bool try_lock() { return word_.exchange(taken, std::memory_order_acquire) == free; }
  void unlock() {
    word_.store(free, std::memory_order_release);
    if (waiting_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      base::wake_one(&word_);
    }
  }
  /// Of two threads: whether the other sleeps for it, and so this one holds it. This one may sleep for it too, and a
  /// signal handler ask meanwhile; and one that nobody woke counts itself only while it sleeps.
  bool is_waited_for_by_other() const {
    return word_.load(std::memory_order_seq_cst) == taken && waiting_.load(std::memory_order_seq_cst) != 0 &&
           sleeper_.load(std::memory_order_relaxed) != &errno;
  }
  /// In a forked child, where those that waited for it are gone.
  void forget_waiting() { waiting_.store(0, std::memory_order_relaxed); }
  /// unlock() there.
  void unlock_in_child() {
    forget_waiting();
    word_.store(free, std::memory_order_release);
  }

 private:
  static constexpr std::uint32_t free = 0;
  static constexpr std::uint32_t taken = 1;
  static constexpr std::uint64_t longest_sleep_ns = 200'000;

  [[gnu::noinline, gnu::cold]] void wait_for_it() {
    constexpr int most_spins = 64;
    for (int spin = 0; spin < most_spins; ++spin) {
      if (word_.load(std::memory_order_relaxed) == free && try_lock()) {
        return;
      }
      base::pause();
    }
    do {
      sleeper_.store(&errno, std::memory_order_relaxed);  // names the thread without a system call
      waiting_.fetch_add(1, std::memory_order_seq_cst);
      base::sleep_while(&word_, taken, longest_sleep_ns);
      waiting_.fetch_sub(1, std::memory_order_seq_cst);
    } while (!try_lock());
  }

  typename Atomics::template atomic<std::uint32_t> word_{free};
  typename Atomics::template atomic<std::uint32_t> waiting_{0};
  std::atomic<const int*> sleeper_{nullptr};  // who began to sleep last
};
using PageLock = BasicPageLock<>;

}  // namespace blockyard::pages
