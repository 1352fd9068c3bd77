#include "replay/observe/usage.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "replay/run/clock_ns.hpp"

namespace blockyard::replay {
namespace {

std::uint64_t ns_of(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_usec) * 1'000u;
}

// The first line of /proc/stat: "cpu", then user, nice, system, idle, iowait, irq, softirq, steal.
std::uint64_t machine_ns() {
  const int file = open("/proc/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return Usage::unknown;
  char text[512];
  const ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  if (got < 4) return Usage::unknown;
  text[got] = '\0';
  std::array<std::uint64_t, 8> columns{};
  char* at = text + 4;
  for (std::uint64_t& column : columns) column = std::strtoull(at, &at, 10);
  const auto& [user, nice, system, idle, waiting, interrupts, soft_interrupts, stolen] = columns;
  const std::uint64_t busy = user + nice + system + interrupts + soft_interrupts + stolen;
  return busy * (1'000'000'000u / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK)));
}

}  // namespace

Usage Usage::operator-(const Usage& before) const {
  const bool known = machine_ns != unknown && before.machine_ns != unknown;
  return {.user_ns = user_ns - before.user_ns,
          .system_ns = system_ns - before.system_ns,
          .minor_faults = minor_faults - before.minor_faults,
          .major_faults = major_faults - before.major_faults,
          .voluntary_switches = voluntary_switches - before.voluntary_switches,
          .involuntary_switches = involuntary_switches - before.involuntary_switches,
          .machine_ns = known ? machine_ns - before.machine_ns : unknown};
}

Usage usage_now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {.user_ns = ns_of(usage.ru_utime),
          .system_ns = ns_of(usage.ru_stime),
          .minor_faults = static_cast<std::uint64_t>(usage.ru_minflt),
          .major_faults = static_cast<std::uint64_t>(usage.ru_majflt),
          .voluntary_switches = static_cast<std::uint64_t>(usage.ru_nvcsw),
          .involuntary_switches = static_cast<std::uint64_t>(usage.ru_nivcsw),
          .machine_ns = machine_ns()};
}

Work work_now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {static_cast<std::uint64_t>(usage.ru_minflt), clock_ns(CLOCK_PROCESS_CPUTIME_ID)};
}

}  // namespace blockyard::replay
