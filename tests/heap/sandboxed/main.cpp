// Why: a decoder or a server's worker allows itself a few system calls, those that memory needs with glibc among them,
// and is killed at any other. In a program with one thread the heap must do with these, also where it grows. With more
// threads the janitor must, once it runs: it opens no file any more.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include "behaviour.hpp"

#pragma weak by_heap_reserve

namespace {

constexpr int no_sandbox = 77;

void allow_a_few_system_calls(unsigned otherwise) {
  std::vector<sock_filter> filter{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int call : {SYS_read, SYS_write, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_brk,
                         SYS_futex, SYS_clock_gettime, SYS_getrandom, SYS_rt_sigreturn, SYS_exit_group, SYS_close}) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, otherwise));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
    _exit(no_sandbox);
  }
}

// Of all lengths, up to 100 MiB and more at once; freed again, so that the heap gives some back.
void churn() {
  constexpr std::size_t largest = 3'000'000;
  std::vector<void*> blocks(1'000);
  unsigned seed = 1;
  for (int turn = 0; turn < 100'000; ++turn) {
    seed = seed * 1664525u + 1013904223u;
    void*& place = blocks[(seed >> 8) % blocks.size()];
    std::free(place);
    place = std::malloc((seed >> 28) != 0 ? (seed >> 16) % 3'000 : (seed >> 4) % largest);
    behaviour::require(place != nullptr, "malloc failed in a sandbox");
  }
  for (void* block : blocks) {
    std::free(block);
  }
}

int with_one_thread() {
  allow_a_few_system_calls(SECCOMP_RET_KILL_PROCESS);
  churn();
  return by_heap_check() == nullptr ? 0 : 1;
}

int with_a_janitor() {
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = [](int, siginfo_t*, void*) { _exit(1); };
  sigaction(SIGSYS, &action, nullptr);
  // It churns until the process ends: a thread may do more as it begins and ends than this sandbox allows.
  static std::atomic<bool> has_begun{false};
  std::thread([] {
    has_begun = true;
    for (;;) {
      churn();
    }
  }).detach();
  constexpr std::size_t reserve = std::size_t{8} << 20;
  by_heap_reserve(reserve);
  while (!has_begun || behaviour::statistics().ready < reserve) {
    usleep(1'000);
  }
  allow_a_few_system_calls(SECCOMP_RET_TRAP);
  constexpr std::chrono::seconds would_read_limits_twice{1};
  const auto begun = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begun < would_read_limits_twice) {
    churn();
  }
  return 0;
}

// Nothing of the program hears of this fork.
pid_t bare_fork() { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0)); }

void run_in_child(int (*run)(), pid_t (*make_child)() = fork) {
  const pid_t child = make_child();
  if (child == 0) {
    behaviour::end_with_parent();
    _exit(run());
  }
  int status = -1;
  behaviour::require(waitpid(child, &status, 0) == child, "the child can't be waited for");
  if (WIFEXITED(status) && WEXITSTATUS(status) == no_sandbox) {
    std::puts("SKIPPED: the system allows no seccomp filter");
    std::exit(no_sandbox);
  }
  behaviour::require(status == 0, "the heap asks the system for more than memory in a sandbox");
}

}  // namespace

int main() {
  run_in_child(with_one_thread);
  run_in_child(with_one_thread, bare_fork);
  run_in_child(with_a_janitor);
  behaviour::require_sound_heap();
}
