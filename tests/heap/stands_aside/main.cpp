// Why: a program with one thread may enter a new user namespace, which the system refuses to one with two; it may
// change its user, of which the C library tells only the threads that it knows; Python warns of a fork where the system
// counts a second thread. So the janitor is gone wherever it would count, and comes back when it is needed. A vfork
// child is not the process: a janitor that it starts ends with it. And the janitor runs where the process may run, not
// where the thread that started it is pinned.
#include <dirent.h>
#include <linux/filter.h>
#include <linux/kcmp.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <thread>

#include "behaviour.hpp"

namespace {

int threads() {
  DIR* const tasks = opendir("/proc/self/task");
  int count = 0;
  while (const dirent* const task = readdir(tasks)) {
    count += task->d_name[0] != '.' ? 1 : 0;
  }
  closedir(tasks);
  return count;
}

void churn() {
  static void* blocks[128];
  for (void*& block : blocks) {
    block = std::memset(std::malloc(400'000), 1, 400'000);
  }
  for (void* block : blocks) {
    std::free(block);
  }
}

void await_the_janitor() {
  while (behaviour::thread_of_the_janitor() == 0) {
    behaviour::ask_for_a_janitor();
    churn();
  }
}

void require_alone_at_a_fork() {
  for (int turn = 0; turn < 20; ++turn) {
    await_the_janitor();
    const pid_t child = fork();
    if (child == 0) {
      behaviour::end_with_parent();
      await_the_janitor();
      _exit(by_heap_check() == nullptr ? 0 : 1);
    }
    behaviour::require(threads() == 1, "a program with one thread has two when it forks");
    int status = -1;
    behaviour::require(waitpid(child, &status, 0) == child && status == 0, "the child of a fork has no janitor");
  }
}

void require_alone_in(int (*call)(), const char* what) {
  await_the_janitor();
  const pid_t child = fork();  // what is changed stays changed
  if (child == 0) {
    behaviour::end_with_parent();
    await_the_janitor();
    const int result = call();
    const int error = errno;
    behaviour::require(result == 0 || error != EINVAL, "the system counts the janitor as a thread");
    behaviour::require(threads() == 1, "the janitor stays while the process changes what it may do");
    _exit(0);
  }
  int status = -1;
  behaviour::require(waitpid(child, &status, 0) == child && status == 0, what);
}

void require_that_a_vfork_child_leaves_the_janitor() {
  std::thread([] { pause(); }).detach();
  const pid_t child = vfork();
  if (child == 0) {
    churn();
    churn();
    _exit(0);
  }
  int status = -1;
  behaviour::require(waitpid(child, &status, 0) == child && status == 0, "a vfork child can't allocate");
  await_the_janitor();
}

void require_that_a_vfork_childs_sandbox_is_its_own() {
  if (syscall(SYS_kcmp, getpid(), getpid(), KCMP_VM, 0, 0) != 0) {  // as in some containers
    std::puts("NOT RUN: a vfork child's sandbox: the system does not say who shares memory");
    return;
  }
  sock_filter ends_who_compares_processes[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kcmp, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(ends_who_compares_processes), ends_who_compares_processes};
  const pid_t child = vfork();
  if (child == 0) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    for (int filter = 0; filter < 2; ++filter) {
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
    }
    _exit(0);
  }
  int status = -1;
  behaviour::require(waitpid(child, &status, 0) == child && status == 0, "a vfork child can't enter a sandbox");
  await_the_janitor();
}

void require_all_cores() {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (std::size_t core = 0; CPU_COUNT(&one) == 0; ++core) {
      if (CPU_ISSET(core, &allowed)) {
        CPU_SET(core, &one);
      }
    }
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    await_the_janitor();
  }).join();
  cpu_set_t janitors;
  sched_getaffinity(behaviour::thread_of_the_janitor(), sizeof janitors, &janitors);
  behaviour::require(CPU_EQUAL(&janitors, &allowed), "the janitor is pinned where the thread was that started it");
}

template <class Run>
void run_in_child(Run&& run) {
  const pid_t child = fork();
  if (child == 0) {
    behaviour::end_with_parent();
    run();
    _exit(0);
  }
  int status = -1;
  behaviour::require(waitpid(child, &status, 0) == child && status == 0, "the child failed");
}

}  // namespace

int main() {
  run_in_child(require_all_cores);
  run_in_child(require_that_a_vfork_child_leaves_the_janitor);
  run_in_child(require_that_a_vfork_childs_sandbox_is_its_own);
  std::thread([] { churn(); }).join();
  require_alone_at_a_fork();
  require_alone_in([] { return unshare(CLONE_NEWUSER); }, "no new user namespace for a program with one thread");
  require_alone_in([] { return setuid(getuid()); }, "the janitor stays for a change of user");
  run_in_child([] {
    await_the_janitor();
    behaviour::require(setuid(getuid()) == 0, "the user can't be set to itself");
    await_the_janitor();  // it comes back
  });
  behaviour::require_sound_heap();
}
