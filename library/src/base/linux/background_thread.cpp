#include "base/background_thread.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "base/kept_errno.hpp"
#include "base/pages.hpp"
#include "base/process.hpp"
#include "base/sanitizer.hpp"

namespace blockyard::base {

namespace {

// For 8,192 cores.
constinit unsigned long allowed_cores[128] = {};
constinit long allowed_bytes = 0;

// Before a program pins its threads.
[[gnu::constructor(101)]] void note_allowed_cores() {
  const KeptErrno kept;
  allowed_bytes = syscall(SYS_sched_getaffinity, 0, sizeof allowed_cores, allowed_cores);
}

// As a batch thread it never preempts the thread that wakes it, in the middle of that thread's work.
void set_up(const char* name) {
  const sched_param none{};
  syscall(SYS_sched_setscheduler, 0, SCHED_BATCH, &none);
  if (allowed_bytes > 0) {
    syscall(SYS_sched_setaffinity, 0, allowed_bytes, allowed_cores);
  }
  syscall(SYS_prctl, PR_SET_NAME, name, 0, 0, 0);
}

#if !BLOCKYARD_SANITIZED
std::uintptr_t thread_pointer() {
  std::uintptr_t pointer = 0;
#if defined(__x86_64__)
  __asm__("mov %%fs:0, %0" : "=r"(pointer));
#elif defined(__aarch64__)
  __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
  return pointer;
}
#endif

}  // namespace

bool BackgroundThread::start(void (*run)(), const char* name, std::initializer_list<const void*> variables) {
  const KeptErrno kept;
  if (!is_over()) {
    return false;
  }
  run_ = run;
  name_ = name;
  alive_.store(1, std::memory_order_relaxed);
#if BLOCKYARD_SANITIZED
  (void)variables;
  pthread_t thread;
  const bool started = pthread_create(
                           &thread, nullptr,
                           [](void* self) -> void* {
                             static_cast<BackgroundThread*>(self)->thread_.store(static_cast<int>(syscall(SYS_gettid)),
                                                                                 std::memory_order_relaxed);
                             set_up(static_cast<BackgroundThread*>(self)->name_);
                             static_cast<BackgroundThread*>(self)->run_();
                             static_cast<BackgroundThread*>(self)->alive_.store(0, std::memory_order_release);
                             return nullptr;
                           },
                           this) == 0;
  if (started) {
    pthread_detach(thread);
  }
#else
  const std::size_t page = page_size();
  constexpr std::size_t stack = std::size_t{64} << 10;
  // The C library's record of a thread lies around the thread pointer, thread-local variables on one side of it.
  constexpr std::size_t record = std::size_t{16} << 10;
  if (memory_ == nullptr) {
    const std::uintptr_t here = thread_pointer();
    std::size_t reach = 0;
    const auto cover = [&](const void* variable) {
      const auto address = reinterpret_cast<std::uintptr_t>(variable);
      reach = std::max<std::size_t>(reach, address > here ? address - here : here - address);
    };
    cover(&errno);
    std::for_each(variables.begin(), variables.end(), cover);
    const std::size_t side = (reach + record + page - 1) & ~(page - 1);
    const long mapped = syscall(SYS_mmap, nullptr, page + stack + 2 * side, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped != -1) {
      syscall(SYS_mprotect, mapped, page, PROT_NONE);
      pointer_ = static_cast<std::uintptr_t>(mapped) + page + stack + side;
#if defined(__x86_64__)
      // By the ABI the thread pointer finds itself; glibc finds its record by the third word.
      reinterpret_cast<std::uintptr_t*>(pointer_)[0] = reinterpret_cast<std::uintptr_t*>(pointer_)[2] = pointer_;
#endif
      // Last: who finds the memory, in a child that another thread forks meanwhile, finds it ready.
      std::atomic_signal_fence(std::memory_order_release);
      memory_ = reinterpret_cast<char*>(mapped);
    }
  }
  bool started = false;
  if (memory_ != nullptr) {
    constexpr int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                          CLONE_SETTLS | CLONE_CHILD_CLEARTID;
    const NoSignals none;
    const int thread = clone(
        [](void* self) {
          set_up(static_cast<BackgroundThread*>(self)->name_);
          static_cast<BackgroundThread*>(self)->run_();
          return 0;
        },
        memory_ + page + stack, flags, this, nullptr, reinterpret_cast<void*>(pointer_), &alive_);
    started = thread > 0;
    thread_.store(started ? thread : 0, std::memory_order_relaxed);
  }
#endif
  if (!started) {
    alive_.store(0, std::memory_order_relaxed);
  }
  return started;
}

bool BackgroundThread::is_gone() {
  const KeptErrno kept;
  int thread = thread_.load(std::memory_order_relaxed);
  const bool gone = is_over() && (thread == 0 || syscall(SYS_tgkill, process_id(), thread, 0) != 0);
  if (gone) {
    // Another thread may get the number, and this one may have been started anew.
    thread_.compare_exchange_strong(thread, 0, std::memory_order_relaxed);
  }
  return gone;
}

// The kernel's own set, with the signals that the C library keeps to itself.
NoSignals::NoSignals() {
  const KeptErrno kept;
  const std::uint64_t all = ~(std::uint64_t{1} << (SIGSYS - 1));
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before_, sizeof all);
}

NoSignals::~NoSignals() {
  const KeptErrno kept;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_);
}

}  // namespace blockyard::base
