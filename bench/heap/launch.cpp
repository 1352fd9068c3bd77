// bench_heap_launch COMMAND...: runs a program without its output and prints what it took, as `NAME VALUE` lines. A
// program's peak counts what the process that started it had resident: this one is linked statically, to have little.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>

namespace {

double ms(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
}

double now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: bench_heap_launch COMMAND...\n");
    return 2;
  }
  const double begun = now_ms();
  const pid_t child = fork();
  if (child == 0) {
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    execvp(arguments[1], arguments + 1);
    _exit(127);
  }
  int status = 0;
  rusage used{};
  if (child < 0 || wait4(child, &status, 0, &used) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    std::fprintf(stderr, "blockyard: %s failed with status %d\n", arguments[1], status);
    return 1;
  }
  std::printf("ms %.3f\ncpu_ms %.3f\npeak_mib %.3f\n", now_ms() - begun, ms(used.ru_utime) + ms(used.ru_stime),
              static_cast<double>(used.ru_maxrss) / 1024);
}
