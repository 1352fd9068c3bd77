// The lock of the page heap: it is held for tens of instructions, so who finds it taken looks again for a while before
// it asks the operating system to be woken. Parking costs both sides a system call, and the one that holds the lock may
// be the program's thread that would have to wake the janitor.
//
// A mutex of the C library makes unlocking wait until every store before it has got its cache line, since whether
// somebody waits is asked by an atomic read-modify-write; the stores here are to tags of pages, which are cold. So it is
// a plain store, and whether somebody waits is looked up behind it. That look may come too early, before the store is
// seen: then nobody wakes the one that just went to sleep, who therefore sleeps for a bounded time only.
//
// Bound: 64 looks with a pause each, some microseconds, then it parks: the holder has lost its processor. A wake-up that
// was lost costs longest_sleep_ns.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/threads.hpp"
#include "heap/remote_list.hpp"

namespace blockyard::heap {

template <class Atomics = StandardAtomics>
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
  /// unlock() in a forked child, where those that waited for it are gone.
  void unlock_in_child() {
    waiting_.store(0, std::memory_order_relaxed);
    word_.store(free, std::memory_order_release);
  }

 private:
  static constexpr std::uint32_t free = 0;
  static constexpr std::uint32_t taken = 1;
  static constexpr std::uint64_t longest_sleep_ns = 200'000;

  [[gnu::noinline, gnu::cold]] void wait_for_it() {
    constexpr int most_spins = 64;
    for (int look = 0; look < most_spins; ++look) {
      if (word_.load(std::memory_order_relaxed) == free && try_lock()) {
        return;
      }
      base::pause();
    }
    waiting_.fetch_add(1, std::memory_order_seq_cst);
    while (!try_lock()) {
      base::sleep_while(&word_, taken, longest_sleep_ns);
    }
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }

  typename Atomics::template atomic<std::uint32_t> word_{free};
  typename Atomics::template atomic<std::uint32_t> waiting_{0};
};
using PageLock = BasicPageLock<>;

}  // namespace blockyard::heap
