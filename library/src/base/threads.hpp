// What an allocator needs of threads: a mutex that may be taken before main and after exit, a call when a thread ends,
// calls around fork, and a pause for spinning. Nothing here allocates from the heap or owns state with a destructor.
#pragma once

#include <pthread.h>

#include <cstdint>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace blockyard::base {

/// A mutex that is constant-initialised and never destroyed, so that static constructors and destructors may use it.
/// Meets BasicLockable and Lockable: std::lock_guard works with it.
class Mutex {
 public:
  constexpr Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() { pthread_mutex_lock(&mutex_); }
  void unlock() { pthread_mutex_unlock(&mutex_); }
  bool try_lock() { return pthread_mutex_trylock(&mutex_) == 0; }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

/// Tells the processor that this thread spins.
inline void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

/// Sleeps until wake_one() is called for `word`, a 32-bit atomic of this process, or until `at_most_ns` have passed; not
/// at all when it no longer holds `value`. Keeps errno.
void sleep_while(const void* word, std::uint32_t value, std::uint64_t at_most_ns);

/// Wakes one thread that sleeps for `word`, if any does. Keeps errno.
void wake_one(const void* word);

/// A function called with the value last set by a thread when that thread ends, after the destructors of its
/// thread_local objects. When it, or a later one of its kind, sets the value again, it is called again (the system
/// limits the rounds to a handful). It is not called for a thread that is alive when the process ends.
class ThreadExit {
 public:
  using Callback = void (*)(void* value);

  constexpr ThreadExit() = default;
  ThreadExit(const ThreadExit&) = delete;
  ThreadExit& operator=(const ThreadExit&) = delete;

  /// Once a process, before the first set(). False when the process has no key left: then nobody is called.
  bool open(Callback callback);

  /// Sets the calling thread's value; nullptr means: don't call.
  void set(void* value) const;

 private:
  pthread_key_t key_ = 0;
  bool open_ = false;
};

/// Registers what runs around every fork from now on, in the forking thread: `prepare` before it, then `parent` or
/// `child`. False when the system has no room for it.
bool around_fork(void (*prepare)(), void (*parent)(), void (*child)());

}  // namespace blockyard::base
