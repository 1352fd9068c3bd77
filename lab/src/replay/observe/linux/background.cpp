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

#include "clock/clock.hpp"
#include "replay/observe/usage.hpp"
#include "replay/run/clock_ns.hpp"
#include "replay/run/process_memory.hpp"

namespace blockyard::replay {
namespace {

constexpr const char* tasks = "/proc/self/task";
// After the last free.
constexpr std::uint64_t quiet_ns = 50'000'000;
constexpr std::uint64_t longest_ns = 1'000'000'000;
// Between two checks. A thread that uses no more than that only checks whether it has work.
constexpr std::uint64_t idle_cpu_ns = 50'000;
constexpr timespec rest{0, 5'000'000};

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

Aftermath observe_aftermath(const Session& session, Background& background) {
  const std::uint64_t begin = clock::ticks();
  const Work before = work_now();
  const std::uint64_t cpu_before = background.update(session);
  std::uint64_t cpu = cpu_before;
  std::uint64_t resident = resident_bytes();
  std::uint64_t active_ns = 0;
  while (background.alive()) {
    nanosleep(&rest, nullptr);
    const std::uint64_t now_ns = session.ns(clock::ticks() - begin);
    const std::uint64_t cpu_now = background.update(session);
    const std::uint64_t resident_now = resident_bytes();
    if (cpu_now - cpu > idle_cpu_ns || resident_now != resident) active_ns = now_ns;
    cpu = cpu_now;
    resident = resident_now;
    if (now_ns - active_ns >= quiet_ns || now_ns >= longest_ns) break;
  }
  return {.cpu_ns = cpu - cpu_before,
          .minor_faults = work_now().minor_faults - before.minor_faults,
          .resident_bytes = resident,
          .settled_after_ns = active_ns};
}

}  // namespace blockyard::replay
