#include "replay/observe/background.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "replay/run/clock_ns.hpp"

namespace blockyard::replay {
namespace {

constexpr const char* tasks = "/proc/self/task";

// Calls `visit` with the id of every thread of this process. opendir() would use the heap, which may be the
// allocator's.
template <typename Visit>
void for_each_thread(Visit visit) {
  const int folder = open(tasks, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  alignas(dirent64) char buffer[4096];
  for (long got = 0; (got = syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0;) {
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
      at += entry->d_reclen;
      const auto id = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
      if (id > 0) visit(id);
    }
  }
  close(folder);
}

// The kernel's clock of one thread's processor time (CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED in the kernel's ABI).
// pthread_getcpuclockid gives the same, but only for threads with a pthread_t. False when the thread has ended.
bool cpu_time(pid_t id, std::uint64_t& ns) {
  const auto clock = static_cast<clockid_t>((~static_cast<unsigned>(id) << 3) | 4u | 2u);
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return false;
  ns = ns_of(time);
  return true;
}

}  // namespace

void Background::remember_lab() {
  for_each_thread([this](pid_t id) {
    if (lab_count_ < lab_.size()) lab_[lab_count_++] = id;
  });
}

bool Background::is_labs(const Session& session, pid_t id) const {
  return std::find(lab_.begin(), lab_.begin() + lab_count_, id) != lab_.begin() + lab_count_ ||
         std::any_of(session.threads.begin(), session.threads.end(),
                     [id](const ReplayThread& thread) { return thread.kernel_id == id; });
}

void Background::add(pid_t id) {
  if (count_ == threads_.size()) {
    ++uncounted_;
    return;
  }
  Thread& thread = threads_[count_++];
  thread = {.id = id, .alive = true, .cpu_ns = 0, .clock_ns = 0, .name = {}};
}

void Background::scan(const Session& session) {
  for_each_thread([&](pid_t id) {
    const auto known = std::any_of(threads_.begin(), threads_.begin() + count_,
                                   [id](const Thread& thread) { return thread.alive && thread.id == id; });
    if (!known && !is_labs(session, id)) add(id);
  });
}

void Background::start_clock(const Session& session) {
  update(session);
  for (std::size_t i = 0; i < count_; ++i) threads_[i].clock_ns = threads_[i].cpu_ns;
}

std::uint64_t Background::update(const Session& session) {
  struct stat folder {};
  if (stat(tasks, &folder) == 0 && folder.st_nlink != links_) {
    links_ = folder.st_nlink;
    scan(session);
  }
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    Thread& thread = threads_[i];
    if (thread.alive) {
      thread.alive = cpu_time(thread.id, thread.cpu_ns);
      // Many threads get their name only after a while.
      char path[64];
      std::snprintf(path, sizeof path, "%s/%d/comm", tasks, thread.id);
      if (const int file = thread.alive ? open(path, O_RDONLY | O_CLOEXEC) : -1; file >= 0) {
        const ssize_t got = read(file, thread.name.data(), thread.name.size());
        if (got > 0) thread.name[static_cast<std::size_t>(got) - 1] = '\0';  // in place of the line's end
        close(file);
      }
    }
    sum += thread.cpu_ns - thread.clock_ns;
  }
  return sum;
}

bool Background::alive() const {
  return std::any_of(threads_.begin(), threads_.begin() + count_, [](const Thread& thread) { return thread.alive; });
}

std::vector<std::string> Background::names() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count_; ++i) names.emplace_back(threads_[i].name.data());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace blockyard::replay
