#include "record/linux/attach/target.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "journal/event.hpp"

namespace blockyard::record::attach {
namespace {

using journal::Error;

std::string number(pid_t pid) { return std::to_string(pid); }

void refuse_executable(const Target& target) {
  const std::string who = "process " + number(target.pid());
  std::ifstream file(target.folder() + "/exe", std::ios::binary);
  Elf64_Ehdr header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header))
    throw Error(who + " can't be looked at: it is a kernel thread or another user's; attach as that user or as root");
  if (header.e_ident[EI_CLASS] != ELFCLASS64)
    throw Error(who + " is a 32-bit program; the recorder is a 64-bit library and can't be loaded into it");
#if defined(__x86_64__)
  constexpr unsigned own_machine = EM_X86_64;
#else
  constexpr unsigned own_machine = EM_NONE;
#endif
  if (header.e_machine != own_machine)
    throw Error("attaching works on x86-64 only; start the program with 'blockyard record --asleep -- PROGRAM'");
}

void refuse_library(const Target& target) {
  const std::string who = "process " + number(target.pid());
  bool has_libc = false;
  bool has_musl = false;
  for (const Mapping& mapping : target.mappings()) {
    has_libc |= is_file(mapping, "libc.so.6");
    has_musl |= mapping.path.find("ld-musl") != std::string::npos;
  }
  if (has_musl) throw Error(who + " runs on musl's C library, and the recorder needs glibc");
  if (!has_libc)
    throw Error(who +
                " is linked statically or still starting: there is no libc.so.6 into which the recorder could go");
}

// A filter that the program has installed itself may kill it for what attaching does: it connects to a socket.
void refuse_sandbox(const Target& target) {
  const std::string who = "process " + number(target.pid());
  const auto filters = [](const std::string& count) { return count.empty() ? 0 : std::stoi(count); };
  const Target us(getpid());
  const std::string mode = target.status("Seccomp");
  if (mode == "1" || filters(target.status("Seccomp_filters")) > filters(us.status("Seccomp_filters")))
    throw Error(who +
                " restricts its system calls (seccomp), and might be killed for those of the recorder; start it with "
                "'blockyard record --asleep -- PROGRAM', or attach from inside its container");
}

}  // namespace

bool is_file(const Mapping& mapping, const std::string& name) {
  std::string path = mapping.path;
  constexpr std::string_view removed = " (deleted)";
  if (path.ends_with(removed)) path.resize(path.size() - removed.size());
  return path.size() > name.size() && path.ends_with(name) && path[path.size() - name.size() - 1] == '/';
}

void Target::refuse_unfit() const {
  const std::string who = "process " + number(pid_);
  if (kill(pid_, 0) != 0 && errno == ESRCH) throw Error("there is no process " + number(pid_));
  const std::string state = status("State");
  if (state.starts_with("Z") || state.starts_with("X")) throw Error(who + " has ended");
  if (status("Tgid") != number(pid_)) throw Error(number(pid_) + " is a thread of process " + status("Tgid"));
  const std::string tracer = status("TracerPid");
  if (tracer != "0")
    throw Error(who + " is traced by process " + tracer + ", a debugger most likely; let that one detach first");
  if (state.starts_with("T") || state.starts_with("t"))
    throw Error(who + " is stopped; let it go on with 'fg' or 'kill -CONT " + number(pid_) + "', then attach");
  refuse_executable(*this);
  refuse_library(*this);
  refuse_sandbox(*this);
  if (status("x86_Thread_features").find("shstk") != std::string::npos)
    throw Error(who + " uses shadow stacks, and a call can't be put in; start it with GLIBC_TUNABLES without them");
}

std::vector<pid_t> Target::threads() const {
  std::vector<pid_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder() + "/task", error), end; !error && entry != end;
       entry.increment(error))
    found.push_back(std::stoi(entry->path().filename()));
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<Mapping> Target::mappings() const {
  std::vector<Mapping> found;
  std::ifstream file(folder() + "/maps");
  for (std::string line; std::getline(file, line);) {
    Mapping mapping{};
    std::istringstream words(line);
    char dash = 0;
    std::string rights;
    std::string device;
    std::string inode;
    words >> std::hex >> mapping.begin >> dash >> mapping.end >> rights >> mapping.offset >> device >> inode;
    std::getline(words >> std::ws, mapping.path);
    mapping.is_writable = rights.size() > 1 && rights[1] == 'w';
    mapping.is_code = rights.size() > 2 && rights[2] == 'x';
    found.push_back(mapping);
  }
  return found;
}

std::string Target::status(const char* name, pid_t thread) const {
  std::ifstream file(folder() + (thread == 0 ? "" : "/task/" + number(thread)) + "/status");
  const std::string key = std::string(name) + ":";
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t value = line.find_first_not_of(" \t", key.size());
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

std::uint64_t Target::signals(const char* name, pid_t thread) const {
  const std::string digits = status(name, thread);
  return digits.empty() ? 0 : std::stoull(digits, nullptr, 16);
}

namespace {

template <typename Transfer>
bool transfer(const std::string& folder, int mode, Transfer one) {
  const int file = open((folder + "/mem").c_str(), mode | O_CLOEXEC);
  if (file < 0) return false;
  const bool done = one(file);
  close(file);
  return done;
}

}  // namespace

bool Target::read(std::uint64_t from, void* into, std::size_t bytes) const {
  return transfer(folder(), O_RDONLY, [&](int file) {
    return pread(file, into, bytes, static_cast<off_t>(from)) == static_cast<ssize_t>(bytes);
  });
}

bool Target::write(std::uint64_t to, const void* from, std::size_t bytes) const {
  return transfer(folder(), O_WRONLY, [&](int file) {
    return pwrite(file, from, bytes, static_cast<off_t>(to)) == static_cast<ssize_t>(bytes);
  });
}

}  // namespace blockyard::record::attach
