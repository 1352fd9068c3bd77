// Reads /proc and uname.
#include "record/linux/collect/process_info.hpp"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace blockyard::record {
namespace {

// Not with a stream: reading a process that is just ending fails with ESRCH, which a stream's iterator throws.
std::string read_all(const std::string& path) {
  std::string text;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char part[4096];
  for (ssize_t got = 0; (got = read(file, part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(got));
  close(file);
  return text;
}

// The value of the first line of `path` that starts with `key`, without the characters `around` it.
std::string value_of(const std::string& path, const std::string& key, const std::string& around) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t begin = line.find_first_not_of(around, key.size());
    const std::size_t end = line.find_last_not_of(around);
    if (begin != std::string::npos && end >= begin) return line.substr(begin, end - begin + 1);
  }
  return "";
}

std::string process_path(pid_t pid, const std::string& rest) { return "/proc/" + std::to_string(pid) + "/" + rest; }

std::string task_path(pid_t pid, std::uint64_t tid) { return process_path(pid, "task/" + std::to_string(tid)); }

}  // namespace

std::string program_of(pid_t pid) {
  std::error_code error;
  return std::filesystem::read_symlink(process_path(pid, "exe"), error).string();
}

std::vector<std::string> command_of(pid_t pid) {
  const std::string text = read_all(process_path(pid, "cmdline"));
  std::vector<std::string> command;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    command.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return command;
}

std::string thread_name(pid_t pid, std::uint64_t tid) {
  std::string name = read_all(task_path(pid, tid) + "/comm");
  if (name.ends_with('\n')) name.pop_back();
  return name;
}

bool thread_exists(pid_t pid, std::uint64_t tid) { return access(task_path(pid, tid).c_str(), F_OK) == 0; }

std::optional<std::uint64_t> age_seconds(pid_t pid) {
  const std::string stat = read_all(process_path(pid, "stat"));
  // The second field is the name in parentheses, which may hold any character; the start is the 22nd, in clock ticks.
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(stat.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) rest >> skipped;
  std::uint64_t start = 0;
  timespec now{};
  if (!(rest >> start) || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return std::nullopt;
  const auto seconds = static_cast<std::uint64_t>(now.tv_sec);
  start /= static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  return seconds > start ? seconds - start : 0;
}

std::string machine_line() {
  utsname kernel{};
  uname(&kernel);
  std::string cpu = value_of("/proc/cpuinfo", "model name", " \t:");
  if (cpu.empty()) cpu = kernel.machine;
  std::string line =
      cpu + " x " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + ", " + kernel.sysname + " " + kernel.release;
  const std::string distribution = value_of("/etc/os-release", "PRETTY_NAME=", "\"");
  return distribution.empty() ? line : line + ", " + distribution;
}

std::uint64_t physical_memory_bytes() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace blockyard::record
