#include "replay/run/keep_awake.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include "journal/event.hpp"
#include "replay/run/clock_ns.hpp"

namespace blockyard::replay {
namespace {

[[noreturn]] void stay_awake_on(std::size_t core, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  prctl(PR_SET_NAME, "blockyard-awake");
  syscall(SYS_close_range, 0u, ~0u, 0u);  // pipes and locks must end with their owners
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  const sched_param idle{};
  // Any class but the idle one would take the core from measured threads.
  if (sched_setscheduler(0, SCHED_IDLE, &idle) != 0 || sched_setaffinity(0, sizeof only, &only) != 0) _exit(1);
  for (volatile std::uint64_t turns = 0;;) turns = turns + 1;
}

}  // namespace

void KeepAwake::start() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    throw journal::Error("--keep-awake: the system does not say which cores there are");
  }
  const pid_t parent = getpid();
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed)) continue;
    const pid_t process = fork();
    if (process == 0) stay_awake_on(core, parent);
    if (process < 0) {
      throw journal::Error(std::string("--keep-awake needs a process for each core, and the system refuses one: ") +
                           std::strerror(errno));
    }
    processes_.push_back(process);
  }
}

KeepAwake::~KeepAwake() {
  for (const pid_t process : processes_) kill(process, SIGKILL);
  for (const pid_t process : processes_) waitpid(process, nullptr, 0);
}

std::uint64_t KeepAwake::cpu_ns() const {
  std::uint64_t sum = 0;
  for (const pid_t process : processes_) {
    clockid_t clock{};
    if (clock_getcpuclockid(process, &clock) == 0) sum += clock_ns(clock);
  }
  return sum;
}

}  // namespace blockyard::replay
