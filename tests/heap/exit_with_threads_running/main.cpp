// Why: exit runs destructors while other threads go on allocating and freeing; the heap must not be torn down under
// them.
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "behaviour.hpp"

namespace {

struct Late {
  ~Late() {
    for (int i = 0; i < 20000; ++i) {
      std::free(std::malloc(static_cast<std::size_t>(i % 3000)));
    }
  }
} late;

[[noreturn]] void churn() {
  std::vector<std::string> strings(64);
  for (std::size_t i = 0;; ++i) {
    strings[i % strings.size()] = std::string(i % 5000, 'c');
  }
}

}  // namespace

int main() {
  for (int round = 0; round < 20; ++round) {
    const pid_t pid = fork();
    if (pid == 0) {
      behaviour::end_with_parent();
      for (int i = 0; i < 3; ++i) {
        std::thread(churn).detach();
      }
      usleep(2000);
      std::exit(0);
    }
    int status = 1;
    waitpid(pid, &status, 0);
    behaviour::require(status == 0, "a program that exits with threads running did not exit cleanly");
  }
  behaviour::require_sound_heap();
}
