// Thread ends and forks by POSIX, sleep and wake-up by futexes.
#include "base/threads.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

// Exported by glibc: the first since 2.32, the others always. Weak, so that other C libraries serve too.
extern "C" {
extern char __libc_single_threaded __attribute__((weak));
void _IO_list_lock() __attribute__((weak));
void _IO_list_unlock() __attribute__((weak));
}

namespace blockyard::base {

bool is_only_thread() { return &__libc_single_threaded != nullptr && __libc_single_threaded != 0; }

void lock_streams() {
  if (_IO_list_lock != nullptr) {
    _IO_list_lock();
  }
}

void unlock_streams() {
  if (_IO_list_unlock != nullptr) {
    _IO_list_unlock();
  }
}

void sleep_while(const void* word, std::uint32_t value, std::uint64_t at_most_ns) {
  const timespec limit{static_cast<time_t>(at_most_ns / 1'000'000'000), static_cast<long>(at_most_ns % 1'000'000'000)};
  const int saved = errno;
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &limit, nullptr, 0);
  errno = saved;
}

void wake_one(const void* word) {
  const int saved = errno;
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  errno = saved;
}

bool ThreadExit::open(Callback callback) {
  open_ = pthread_key_create(&key_, callback) == 0;
  return open_;
}

void ThreadExit::set(void* value) const {
  if (open_) {
    pthread_setspecific(key_, value);
  }
}

bool around_fork(void (*prepare)(), void (*parent)(), void (*child)()) {
  return pthread_atfork(prepare, parent, child) == 0;
}

}  // namespace blockyard::base
