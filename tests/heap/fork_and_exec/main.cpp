// Why: shells and build tools fork and exec thousands of times, with vfork and posix_spawn in the mix; the preload
// follows into every child.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "behaviour.hpp"

int main(int count, char** arguments) {
  if (count > 1) {
    const std::string text(5000, 'x');
    behaviour::require_sound_heap();
    return text.size() == 5000 && std::strcmp(arguments[1], "child") == 0 ? 7 : 1;
  }
  char child[] = "child";
  char* const child_arguments[] = {arguments[0], child, nullptr};
  for (int round = 0; round < 40; ++round) {
    std::free(std::malloc(static_cast<std::size_t>(round) * 4000));
    pid_t pid = -1;
    if (round % 2 == 0) {
      pid = fork();
      if (pid == 0) {
        execv("/proc/self/exe", child_arguments);
        _exit(1);
      }
    } else {
      behaviour::require(posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, child_arguments, environ) == 0,
                         "posix_spawn failed");
    }
    int status = 0;
    behaviour::require(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7,
                       "a child that was forked and executed did not end as it should");
  }
  behaviour::require_sound_heap();
}
