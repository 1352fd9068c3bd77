// Thread ends and forks by POSIX, sleep and wake-up by futexes.
#include "base/threads.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <ctime>
#include <mutex>
#include <type_traits>

#include "base/kept_errno.hpp"

// Exported by glibc: the first since 2.32, the others always. Weak, so that other C libraries serve too.
extern "C" {
// NOLINTNEXTLINE(readability-redundant-declaration): makes what a header may have declared weak
extern char __libc_single_threaded __attribute__((weak));
void _IO_list_lock() __attribute__((weak));
void _IO_list_unlock() __attribute__((weak));
}

namespace blockyard::base {
namespace {

struct AroundFork {
  void (*prepare)();
  void (*parent)();
  void (*child)();
  void (*child_alone)();
};

// Held across a fork, or the child of a thread that forks while another registers would find it locked.
constinit Mutex around_fork_lock;
constinit std::array<AroundFork, 8> around_forks{};
constinit std::size_t around_fork_count = 0;
constinit AroundFork around_each{[] {}, [] {}, [] {}, nullptr};
constinit std::atomic<bool> registered{false};
constinit bool forked_alone = false;  // read once: the child begins with one thread

// The lock of the C library's list of streams, which fork takes after its handlers have run. Recursive. Whoever holds
// it waits for single streams, and whoever holds a stream may allocate: it comes before all locks of ours. A child does
// not give it back: fork has set it anew.
void before_fork() {
  around_each.prepare();
  if (is_only_thread()) {
    forked_alone = true;
    return;
  }
  if (_IO_list_lock != nullptr) {
    _IO_list_lock();
  }
  around_fork_lock.lock();
  forked_alone = false;
  for (std::size_t i = around_fork_count; i-- > 0;) {
    around_forks[i].prepare();
  }
}

void after_fork_in_parent() {
  if (!forked_alone) {
    for (std::size_t i = 0; i < around_fork_count; ++i) {
      around_forks[i].parent();
    }
    around_fork_lock.unlock();
    if (_IO_list_unlock != nullptr) {
      _IO_list_unlock();
    }
  }
  around_each.parent();
}

void after_fork_in_child() {
  for (std::size_t i = 0; i < around_fork_count; ++i) {
    if (!forked_alone) {
      around_forks[i].child();
    } else if (around_forks[i].child_alone != nullptr) {
      around_forks[i].child_alone();
    }
  }
  if (!forked_alone) {
    around_fork_lock.unlock();
  }
  around_each.child();
}

// Before the constructors of a program that links the library, and after those of the libraries that it needs.
[[gnu::constructor(101)]] void start() { come_before_other_fork_handlers(); }

}  // namespace

bool is_only_thread() { return &__libc_single_threaded != nullptr && __libc_single_threaded != 0; }

void sleep_while(const void* word, std::uint32_t value, std::uint64_t at_most_ns) {
  const timespec limit{static_cast<time_t>(at_most_ns / 1'000'000'000), static_cast<long>(at_most_ns % 1'000'000'000)};
  const KeptErrno kept;
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &limit, nullptr, 0);
}

void wake_one(const void* word) {
  const KeptErrno kept;
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

static_assert(std::is_same_v<pthread_key_t, std::uint32_t>);

bool ThreadExit::open(Callback callback) {
  if (!tried_) {  // after that nothing is written: set() reads without the lock of those who open
    tried_ = true;
    open_ = pthread_key_create(&key_, callback) == 0;
  }
  return open_;
}

bool ThreadExit::set(void* value) const { return open_ && pthread_setspecific(key_, value) == 0; }

bool ThreadExit::set_may_allocate() const {
  constexpr pthread_key_t keys_in_a_thread = 32;  // of glibc: the first stand in the thread's own record
  return open_ && key_ >= keys_in_a_thread;
}

bool around_fork(void (*prepare)(), void (*parent)(), void (*child)(), void (*child_alone)()) {
  come_before_other_fork_handlers();
  const std::lock_guard lock(around_fork_lock);
  if (around_fork_count == around_forks.size()) {
    return false;
  }
  around_forks[around_fork_count] = {prepare, parent, child, child_alone};
  ++around_fork_count;
  return true;
}

void around_every_fork(void (*before)(), void (*parent)(), void (*child)()) {
  come_before_other_fork_handlers();
  around_each = {before, parent, child, nullptr};
}

void come_before_other_fork_handlers() {
  if (!registered.load(std::memory_order_relaxed) && !registered.exchange(true, std::memory_order_relaxed)) {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  }
}

}  // namespace blockyard::base
