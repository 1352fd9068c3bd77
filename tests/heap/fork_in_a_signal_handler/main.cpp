// Why: POSIX allows a program with one thread to fork in a signal handler, also one that interrupted malloc; what
// starts a debugger on a fault does so. The heap must neither wait for a lock that the interrupted call holds, nor for
// a janitor that waits for that lock, nor have the C library take locks for the janitor's sake. And parent and child
// must both go on where they were interrupted.
#include <malloc.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <vector>

#include "behaviour.hpp"

namespace {

constexpr int most_forks = 300;  // of 30 ms each, and more on a busy machine
volatile std::sig_atomic_t forks = 0;
volatile std::sig_atomic_t failed = 0;
volatile std::sig_atomic_t in_child = 0;

void fork_here(int) {
  if (in_child != 0 || forks == most_forks) {
    return;
  }
  const int saved = errno;
  const pid_t child = fork();
  if (child == 0) {
    in_child = 1;
    behaviour::end_with_parent();
  } else {
    int status = -1;
    failed = failed != 0 || child < 0 || waitpid(child, &status, 0) != child || status != 0;
    forks = forks + 1;
  }
  errno = saved;
}

class Churn {
 public:
  void turn() {
    seed_ = seed_ * 1664525u + 1013904223u;
    void*& place = live_[(seed_ >> 8) % live_.size()];
    std::free(place);
    // Mostly whole pages, which are allocated and freed under a lock.
    place = std::malloc((seed_ >> 30) == 0 ? (seed_ >> 16) % 1'000 : 100'000 + (seed_ >> 8) % 300'000);
    if ((seed_ >> 8) % 16 == 0) {
      malloc_trim(0);
    }
  }

 private:
  std::vector<void*> live_ = std::vector<void*>(100);
  unsigned seed_ = 1;
};

}  // namespace

int main() {
  struct sigaction action {};
  action.sa_handler = fork_here;
  action.sa_flags = SA_RESTART;
  behaviour::require(sigaction(SIGALRM, &action, nullptr) == 0, "the handler can't be set");
  behaviour::ask_for_a_janitor();
  Churn churn;
  int armed = -1;
  while (forks < most_forks && in_child == 0) {
    if (forks != armed) {  // a moment from now on, so that each fork interrupts another instruction
      armed = forks;
      const itimerval once{{0, 0}, {0, 20 + armed * 7 % 50}};
      behaviour::require(setitimer(ITIMER_REAL, &once, nullptr) == 0, "the timer can't be set");
    }
    churn.turn();
  }
  if (in_child != 0) {
    for (int turn = 0; turn < 500; ++turn) {
      churn.turn();
    }
    _exit(by_heap_check() == nullptr ? 0 : 1);
  }
  behaviour::require(failed == 0, "a child that was forked in a signal handler could not go on");
  behaviour::require_sound_heap();
}
