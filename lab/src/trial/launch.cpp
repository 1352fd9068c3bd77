// blockyard-launch REPORT NAME=VALUE... -- PROGRAM ARGUMENTS...: runs a program with these variables and writes what it
// took into the file REPORT, as JSON. A program's peak counts what the process that started it had resident: this one,
// linked statically, has next to nothing, where Python has a hundred megabytes.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double now_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace

int main(int count, char** arguments) {
  int separator = 2;
  while (separator < count && std::strcmp(arguments[separator], "--") != 0) ++separator;
  if (separator + 1 >= count) {
    std::fprintf(stderr, "usage: blockyard-launch REPORT NAME=VALUE... -- PROGRAM ARGUMENTS...\n");
    return 2;
  }
  std::FILE* const report = std::fopen(arguments[1], "we");
  if (report == nullptr) {
    std::perror("blockyard: blockyard-launch can't write its report");
    return 2;
  }
  const double begun = now_s();
  const pid_t child = fork();
  if (child == 0) {
    for (int place = 2; place < separator; ++place) putenv(arguments[place]);
    execvp(arguments[separator + 1], arguments + separator + 1);
    std::fprintf(stderr, "blockyard: %s can't be started: %s\n", arguments[separator + 1], std::strerror(errno));
    _exit(127);
  }
  int status = 0;
  rusage used{};
  if (child < 0 || wait4(child, &status, 0, &used) != child) return 2;
  const double elapsed = now_s() - begun;
  std::fprintf(report,
               "{\"pid\": %d, \"code\": %d, \"signal\": %d, \"elapsed_s\": %.9f, \"cpu_s\": %.6f, \"peak_bytes\": "
               "%lld, \"faults\": %ld}\n",
               static_cast<int>(child), WIFEXITED(status) ? WEXITSTATUS(status) : -1,
               WIFSIGNALED(status) ? WTERMSIG(status) : 0, elapsed, seconds(used.ru_utime) + seconds(used.ru_stime),
               static_cast<long long>(used.ru_maxrss) * 1024, used.ru_minflt + used.ru_majflt);
  return std::fclose(report) == 0 ? 0 : 2;
}
