#include "record/linux/stop.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <fnmatch.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "blockyard/forbid.h"
#include "record/linux/recorder.hpp"
#include "record/linux/tags.hpp"
#include "record/linux/text.hpp"

namespace blockyard::record {
namespace {

/// A limit as Python writes it: the first nine, each ended by a tab. Nothing else stands between limits.
struct Watched {
  const char* what;
  const char* per;
  std::uint64_t most;
  const char* after_phase;
  std::uint64_t after_frames;
  std::uint64_t after_ns;
  const char* thread;
  const char* tag;
  const char* name;
  bool is_active;
  bool frame_counts;
  bool is_over;
  std::uint64_t second;
  std::uint64_t counted;
};

constexpr std::size_t most_limits = 64;
constexpr std::uint64_t second_ns = 1'000'000'000;
Watched limits[most_limits];
std::size_t limit_count = 0;
std::uint64_t begun_ns = 0;
std::uint64_t frames = 0;
std::uint64_t frame_thread = 0;
bool forbidden_was_exceeded = false;
std::uint32_t lock = 0;

/// Nothing of the program runs under it, so the wait is short.
class Lock {
 public:
  Lock() {
    while (__atomic_exchange_n(&lock, 1u, __ATOMIC_ACQUIRE) != 0) syscall(SYS_sched_yield);
  }
  ~Lock() { __atomic_store_n(&lock, 0u, __ATOMIC_RELEASE); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * second_ns + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t thread_id() { return static_cast<std::uint64_t>(syscall(SYS_gettid)); }

/// Cuts the next field off; nullptr after the last of the line.
char* next_field(char*& at) {
  char* const field = at;
  char* const end = std::strchr(at, '\t');
  if (end == nullptr) return nullptr;
  *end = '\0';
  at = end + 1;
  return field;
}

void read_limits(char* rest) {
  while (limit_count < most_limits) {
    char* fields[9];
    for (char*& field : fields) {
      field = next_field(rest);
      if (field == nullptr) return;
    }
    Watched& one = limits[limit_count++];
    one = {fields[0],
           fields[1],
           std::strtoull(fields[2], nullptr, 10),
           fields[3],
           std::strtoull(fields[4], nullptr, 10),
           std::strtoull(fields[5], nullptr, 10),
           fields[6],
           fields[7],
           fields[8],
           false,
           false,
           false,
           0,
           0};
    one.is_active = *one.after_phase == '\0' && one.after_frames == 0 && one.after_ns == 0;
  }
}

std::uint64_t amount(const Watched& limit, RecordKind kind, std::size_t size) {
  const bool is_free = kind == RecordKind::free;
  const bool is_reallocation = kind == RecordKind::reallocate_end;
  if (same_text(limit.what, "allocations")) return is_free ? 0 : 1;
  if (same_text(limit.what, "allocated-bytes")) return is_free ? 0 : size;
  if (same_text(limit.what, "frees")) return is_free || is_reallocation ? 1 : 0;
  return is_reallocation ? 1 : 0;
}

void say(const char* name) {
  for (const char* part : {"blockyard: exceeded here: ", name, "; this thread gets SIGTRAP\n"}) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, part, std::strlen(part));
  }
}

/// Whether a limit is exceeded by this event for the first time.
bool exceeds(Watched& limit, RecordKind kind, std::size_t size, const char* thread, const char* tags) {
  if (limit.is_over) return false;
  const std::uint64_t passed_ns = now_ns() - begun_ns;
  if (limit.after_ns != 0 && passed_ns >= limit.after_ns) limit.is_active = true;
  if (!limit.is_active) return false;
  if (same_text(limit.per, "frame") && !limit.frame_counts) return false;
  if (same_text(limit.per, "second")) {
    const std::uint64_t second = (passed_ns - limit.after_ns) / second_ns;
    if (second != limit.second) limit.counted = 0;
    limit.second = second;
  }
  if (*limit.thread != '\0' && fnmatch(limit.thread, thread, FNM_NOESCAPE) != 0) return false;
  if (*limit.tag != '\0' && fnmatch(limit.tag, tags, FNM_NOESCAPE) != 0) return false;
  limit.counted += amount(limit, kind, size);
  limit.is_over = limit.counted > limit.most;
  return limit.is_over;
}

}  // namespace

bool limits_are_watched = false;

void watch_limits(char* given) {
  begun_ns = now_ns();
  read_limits(given);
  limits_are_watched = true;
}

void watch_event(RecordKind kind, std::size_t size) {
  const int kept = errno;
  char thread[17] = {};
  syscall(SYS_prctl, PR_GET_NAME, thread, 0, 0, 0);
  char tags[4096];
  write_tags(tags, sizeof tags);
  const char* exceeded = nullptr;
  {
    const Lock here;
    for (std::size_t at = 0; at < limit_count; ++at) {
      if (exceeds(limits[at], kind, size, thread, tags)) exceeded = limits[at].name;
    }
    const char* const forbidden = std::strstr(tags, BY_FORBIDDEN "/");
    if (forbidden != nullptr && kind != RecordKind::free && !forbidden_was_exceeded) {
      forbidden_was_exceeded = true;
      exceeded = forbidden;
    }
  }
  if (exceeded != nullptr) {
    say(exceeded);
    syscall(SYS_tgkill, getpid(), static_cast<pid_t>(thread_id()), SIGTRAP);
  }
  errno = kept;
}

void watch_phase(const char* name) {
  const Lock here;
  for (std::size_t at = 0; at < limit_count; ++at) {
    Watched& one = limits[at];
    if (one.is_active || *one.after_phase == '\0' || !same_text(name, one.after_phase)) continue;
    one.is_active = true;
    one.frame_counts = frames != 0;
  }
}

void watch_frame() {
  const Lock here;
  if (frame_thread == 0) frame_thread = thread_id();
  if (frame_thread != thread_id()) return;
  ++frames;
  for (std::size_t at = 0; at < limit_count; ++at) {
    Watched& one = limits[at];
    if (one.after_frames != 0 && frames >= one.after_frames + 1) one.is_active = true;
    one.frame_counts = one.is_active;
    if (same_text(one.per, "frame")) one.counted = 0;
  }
}

bool is_around_the_program() {
  char program[17] = {};
  syscall(SYS_prctl, PR_GET_NAME, program, 0, 0, 0);
  for (const char* name : {"gdb", "gdbserver", "lldb", "lldb-server", "rr", "sh", "dash", "bash"}) {
    if (same_text(program, name)) return true;
  }
  return false;
}

}  // namespace blockyard::record
