// What an allocator needs of threads: a mutex that may be taken before main and after exit, a call when a thread ends,
// calls around fork, and waiting. Nothing here allocates from the heap or has state with a destructor.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace blockyard::base {

/// Tells the processor that this thread spins.
inline void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

/// Sleeps until wake_one() is called for `word`, a 32-bit atomic of this process, or until `at_most_ns` nanoseconds
/// have passed. Returns at once if `word` does not hold `value`. Keeps errno.
void sleep_while(const void* word, std::uint32_t value, std::uint64_t at_most_ns);

/// Sleeps so long, by the call that locks need: a program in a sandbox may allow itself none that only sleeps. Keeps
/// errno.
inline void sleep_for(std::uint64_t ns) {
  static constexpr std::uint32_t nobody_wakes = 0;
  sleep_while(&nobody_wakes, nobody_wakes, ns);
}

/// Wakes one thread that sleeps for `word`, if any does. Keeps errno.
void wake_one(const void* word);

/// A mutex that is constant-initialised and never destroyed, so that static constructors and destructors may use it.
/// Meets Lockable, so std::lock_guard takes it. A child that is forked while the forking thread holds it may unlock it.
/// (The third mutex of Drepper, "Futexes Are Tricky", 2011.)
class Mutex {
 public:
  constexpr Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() {
    if (!try_lock()) {
      while (word_.exchange(waited_for, std::memory_order_acquire) != free) {
        sleep_while(&word_, waited_for, longest_sleep_ns);
      }
    }
  }
  bool try_lock() {
    std::uint32_t seen = free;
    return word_.compare_exchange_strong(seen, taken, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void unlock() {
    if (word_.exchange(free, std::memory_order_release) == waited_for) {
      wake_one(&word_);
    }
  }

 private:
  enum : std::uint32_t { free, taken, waited_for };
  static constexpr std::uint64_t longest_sleep_ns = 1'000'000'000;

  std::atomic<std::uint32_t> word_{free};
};

/// Calls a function when a thread ends, with the value that the thread set last, after the destructors of its
/// thread_local objects. If the value is set again meanwhile, the function is called again, a few times at most. It is
/// not called for threads that live when the process ends.
class ThreadExit {
 public:
  using Callback = void (*)(void* value);

  constexpr ThreadExit() = default;
  ThreadExit(const ThreadExit&) = delete;
  ThreadExit& operator=(const ThreadExit&) = delete;

  /// Call it before the first set(), on one thread at a time; all calls but the first do nothing. False when the
  /// process had no key left then: nothing is called.
  bool open(Callback callback);

  /// Sets the calling thread's value. nullptr means no call. False: nothing will be called for it.
  bool set(void* value) const;

  /// Whether a set() on a thread may allocate a table of `table_bytes` first. Another key's may have begun the same: in
  /// the midst of that, what is set here is lost.
  bool set_may_allocate() const;
  static constexpr std::size_t table_bytes = 512;  // of glibc: 32 keys of 16 bytes

 private:
  std::uint32_t key_ = 0;  // as the system numbers it
  bool tried_ = false;
  bool open_ = false;
};

/// Whether the calling thread is the only one: the C library starts none by itself, and no thread was started since the
/// process began, or since it was forked. False where the C library does not say. A load.
bool is_only_thread();

/// Registers functions that run around every fork from now on, in the forking thread: `prepare` before it, then
/// `parent` or `child`. `prepare` of what was registered last runs first. At most 8 registrations a process; false, and
/// nothing runs, beyond that. Not to be called from such a function.
///
/// With one thread there is nobody to be in the middle of anything but this thread itself, which a signal handler may
/// have interrupted there: it would wait for its own lock for ever. Then none of the three runs, and both processes go
/// on with the locks as they are; only `child_alone` does, unless it is null, in the child.
bool around_fork(void (*prepare)(), void (*parent)(), void (*child)(), void (*child_alone)() = nullptr);

/// Likewise around every fork, whatever threads there are: `before` runs first, the others last. Once a process,
/// before main.
void around_every_fork(void (*before)(), void (*parent)(), void (*child)());

/// Registers with the C library what runs the functions of around_fork(), once. What is registered there first prepares
/// last: whoever prepares after us may wait for a thread that waits for our locks, or allocate. So it is to be called
/// as early as possible; around_fork() does it at the latest. Any thread; does not allocate.
void come_before_other_fork_handlers();

}  // namespace blockyard::base
