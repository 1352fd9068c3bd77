// Allocates a known number of blocks on several threads, then ends in the way that its argument names.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int threads = 3;
constexpr int rounds = 1000;

void work() {
  for (int i = 0; i < rounds; ++i) {
    void* volatile block = std::malloc(900'001);  // volatile, or compilers leave both out
    std::free(block);
  }
}

void wait_for_signal() {
  std::puts("ready");
  std::fflush(stdout);
  for (;;) pause();
}

}  // namespace

int main(int, char** arguments) {
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  const char* ending = arguments[1];
  if (std::strcmp(ending, "return") == 0) return 7;
  if (std::strcmp(ending, "_exit") == 0) _exit(8);
  if (std::strcmp(ending, "abort") == 0) std::abort();
  if (std::strcmp(ending, "kill") == 0) kill(getpid(), SIGKILL);
  if (std::strcmp(ending, "wait") == 0) wait_for_signal();
  if (std::strcmp(ending, "handle") == 0) {
    signal(SIGTERM, [](int) { _exit(9); });
    wait_for_signal();
  }
  if (std::strcmp(ending, "default-handlers") == 0) {
    // SDL and others install handlers only where none is: the recorder must not have put one there.
    for (int number = 1; number < NSIG; ++number) {
      struct sigaction action {};
      if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN)
        return 1;
    }
    return 0;
  }
  if (std::strcmp(ending, "exec") == 0) {
    execl(arguments[0], arguments[0], "return", static_cast<char*>(nullptr));
    return 2;
  }
  const bool is_daemon = std::strcmp(ending, "daemon") == 0;
  if (is_daemon || std::strcmp(ending, "orphan") == 0) {
    // The parent ends when its child runs, which on a busy machine may be long after the fork.
    int running[2];
    char word = 0;
    if (pipe(running) != 0) return 2;
    if (fork() != 0) {
      close(running[1]);
      _exit(read(running[0], &word, 1) == 0 ? 7 : 3);
    }
    if (is_daemon && fork() != 0) _exit(0);  // a child that has no event at all
    close(running[1]);
    // No event until its input has a byte, long after its parent has ended.
    if (read(STDIN_FILENO, &word, 1) == 1) work();
    _exit(0);
  }
  if (std::strcmp(ending, "churn") == 0) {
    std::puts("ready");
    std::fflush(stdout);
    for (;;) work();
  }
  return 3;
}
