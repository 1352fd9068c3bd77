// The lock of the page heap: it is held for tens of instructions, so who finds it taken looks again for a while before
// it asks the operating system to be woken. Parking costs both sides a system call, and the one that holds the lock may
// be the program's thread that would have to wake the janitor.
//
// Bound: 64 looks with a pause each, some microseconds, then it parks as any mutex does: the holder has lost its
// processor.
#pragma once

#include <mutex>

namespace blockyard::heap {

class PageLock {
 public:
  void lock() {
    for (int look = 0; look < 64; ++look) {
      if (mutex_.try_lock()) [[likely]] {
        return;
      }
      pause();
    }
    mutex_.lock();
  }
  void unlock() { mutex_.unlock(); }

 private:
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  std::mutex mutex_;
};

}  // namespace blockyard::heap
