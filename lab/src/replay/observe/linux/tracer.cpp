#include "replay/observe/tracer.hpp"

#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "journal/event.hpp"
#include "replay/results/npy.hpp"
#include "replay/run/clock_ns.hpp"

namespace blockyard::replay {
namespace {

/// A system call that one thread made once or more at one event. 24 bytes, laid out as in
/// docs/reference/campaign-folder.md.
struct SyscallRow {
  std::uint32_t event;
  std::uint16_t thread;
  std::uint16_t call;  ///< the system call's number on this machine
  std::uint32_t errors;
  std::uint32_t count;
  std::uint64_t ns;  ///< of all of them together, including the tracer's stops
};
static_assert(sizeof(SyscallRow) == 24);

/// Stands for a thread that is not in the journal: the allocator started it.
constexpr std::uint16_t background_thread = 0xffff;

constexpr const char* syscall_fields =
    "[('event', '<u4'), ('thread', '<u2'), ('call', '<u2'), ('errors', '<u4'), ('count', '<u4'), ('ns', '<u8')]";

auto key(const SyscallRow& row) { return std::tuple(row.event, row.thread, row.call); }

/// Joins rows with the same event, thread and call, and sorts by these.
std::vector<SyscallRow> merged(std::vector<SyscallRow> rows) {
  std::sort(rows.begin(), rows.end(), [](const SyscallRow& a, const SyscallRow& b) { return key(a) < key(b); });
  std::size_t kept = 0;
  for (const SyscallRow& row : rows) {
    if (kept != 0 && key(rows[kept - 1]) == key(row)) {
      rows[kept - 1].errors += row.errors;
      rows[kept - 1].count += row.count;
      rows[kept - 1].ns += row.ns;
    } else {
      rows[kept++] = row;
    }
  }
  rows.resize(kept);
  return rows;
}

// The value of WSTOPSIG for a stop at a system call, under PTRACE_O_TRACESYSGOOD.
constexpr int syscall_stop = SIGTRAP | 0x80;

[[noreturn]] void not_allowed(int error) {
  throw journal::Error(std::string("this system does not let a process trace its own child (") + std::strerror(error) +
                       "); in a container, allow ptrace (such as --cap-add SYS_PTRACE), and see that "
                       "kernel.yama.ptrace_scope is below 3");
}

pid_t traced_child = 0;

// When interrupted, the child cleans up and ends, and this process after it.
void hand_on(int signal) {
  if (traced_child > 0) kill(traced_child, signal);
}

/// The tracing process.
class Tracer {
 public:
  Tracer(pid_t child, const TraceBoard& board) : child_(child), board_(board) {}

  /// Attaches to the child, which waits. Returns the error number, or 0.
  int attach();
  /// Records the child's system calls. Returns its status at its end.
  int follow();
  /// The rows of all threads of the journal and of the allocator.
  std::vector<SyscallRow> rows();

 private:
  struct Thread {
    const Mark* mark = nullptr;
    bool lab = false;
    bool noted = false;  ///< the call that it is in has a row, which is its last
    std::uint64_t entered_ns = 0;
    std::vector<SyscallRow> rows;
  };

  const Mark* mark_of(pid_t id) const;
  void know(pid_t id);
  void at_stop(pid_t id, int status);
  void at_syscall(pid_t id);
  void note(Thread& thread, std::uint32_t event, std::uint64_t call);

  pid_t child_;
  const TraceBoard& board_;
  std::unordered_map<pid_t, Thread> threads_;
  std::vector<SyscallRow> ended_;  ///< of threads whose id may belong to another thread by now
};

int Tracer::attach() {
  constexpr long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SEIZE, child_, nullptr, options) != 0) return errno;
  return ptrace(PTRACE_INTERRUPT, child_, nullptr, nullptr) != 0 ? errno : 0;
}

const Mark* Tracer::mark_of(pid_t id) const {
  const std::uint32_t count = board_.threads.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (board_.marks[i].kernel_id.load(std::memory_order_acquire) == static_cast<std::uint32_t>(id))
      return &board_.marks[i];
  }
  return nullptr;
}

int Tracer::follow() {
  for (;;) {
    int status = 0;
    const pid_t id = waitpid(-1, &status, __WALL);
    if (id < 0) {
      if (errno == EINTR) continue;
      return 0;
    }
    if (WIFSTOPPED(status)) {
      at_stop(id, status);
    } else if (id == child_) {
      return status;
    } else if (const auto ended = threads_.find(id); ended != threads_.end()) {
      ended_.insert(ended_.end(), ended->second.rows.begin(), ended->second.rows.end());
      threads_.erase(ended);
    }
  }
}

void Tracer::know(pid_t id) {
  const auto [thread, is_new] = threads_.try_emplace(id);
  if (is_new) thread->second.lab = board_.allocator_loaded.load(std::memory_order_acquire) == 0;
}

void Tracer::at_stop(pid_t id, int status) {
  know(id);
  const int signal = WSTOPSIG(status);
  const int event = status >> 16;
  if (signal == syscall_stop) {
    at_syscall(id);
    ptrace(PTRACE_SYSCALL, id, nullptr, nullptr);
  } else if (event == PTRACE_EVENT_STOP && signal != SIGTRAP) {
    ptrace(PTRACE_LISTEN, id, nullptr, nullptr);  // stopped by a signal: it stays stopped until a signal continues it
  } else if (event != 0) {
    // The thread that made it is stopped until the new thread is known: what follows can't be mistaken for what came
    // before.
    if (unsigned long made = 0; event == PTRACE_EVENT_CLONE && ptrace(PTRACE_GETEVENTMSG, id, nullptr, &made) == 0)
      know(static_cast<pid_t>(made));
    ptrace(PTRACE_SYSCALL, id, nullptr, nullptr);
  } else {
    ptrace(PTRACE_SYSCALL, id, nullptr, static_cast<long>(signal));  // its own, to be delivered
  }
}

void Tracer::at_syscall(pid_t id) {
  Thread& thread = threads_[id];
  __ptrace_syscall_info info{};
  if (ptrace(PTRACE_GET_SYSCALL_INFO, id, sizeof info, &info) <= 0) return;
  if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
    if (!thread.noted) return;
    thread.noted = false;
    thread.rows.back().ns += clock_ns(CLOCK_MONOTONIC) - thread.entered_ns;
    if (info.exit.is_error != 0) ++thread.rows.back().errors;
    return;
  }
  if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return;
  if (thread.mark == nullptr && (thread.mark = mark_of(id)) != nullptr) {
    thread.rows.clear();  // the replayer's own calls, made before the thread could publish its mark
  }
  if (thread.mark == nullptr) {
    if (!thread.lab) note(thread, none, info.entry.nr);
    return;
  }
  const std::uint32_t doing = thread.mark->doing.load(std::memory_order_acquire);
  if (doing != Mark::lab) note(thread, doing == Mark::outside ? none : doing, info.entry.nr);
}

// Equal calls in a row share one row: a thread that polls for an hour needs no memory.
void Tracer::note(Thread& thread, std::uint32_t event, std::uint64_t call) {
  const auto number = static_cast<std::uint16_t>(call);
  const auto index = thread.mark == nullptr
                         ? background_thread
                         : static_cast<std::uint16_t>(thread.mark->journal_thread.load(std::memory_order_relaxed));
  if (thread.rows.empty() || thread.rows.back().event != event || thread.rows.back().call != number) {
    thread.rows.push_back({.event = event, .thread = index, .call = number, .errors = 0, .count = 0, .ns = 0});
  }
  ++thread.rows.back().count;
  thread.noted = true;
  thread.entered_ns = clock_ns(CLOCK_MONOTONIC);
}

std::vector<SyscallRow> Tracer::rows() {
  std::vector<SyscallRow> all = std::move(ended_);
  for (const auto& [id, thread] : threads_) all.insert(all.end(), thread.rows.begin(), thread.rows.end());
  return merged(std::move(all));
}

// Ends this process in the way the child ended.
[[noreturn]] void end_like(int status) {
  if (WIFSIGNALED(status)) {
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
  }
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

[[noreturn]] void stay_behind(pid_t child, int gate, const TraceBoard& board, const std::string& folder) {
  traced_child = child;
  struct sigaction action {};
  action.sa_handler = hand_on;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
  sigset_t none_blocked;
  sigemptyset(&none_blocked);
  sigprocmask(SIG_SETMASK, &none_blocked, nullptr);
  Tracer tracer(child, board);
  if (const int error = tracer.attach(); error != 0) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    not_allowed(error);
  }
  const char go = 1;
  if (write(gate, &go, 1) != 1) kill(child, SIGKILL);
  close(gate);
  const int status = tracer.follow();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    write_npy(folder + "/syscalls.npy", syscall_fields, std::span<const SyscallRow>(tracer.rows()));
  end_like(status);
}

}  // namespace

TraceBoard& go_on_traced(const std::string& folder) {
  void* shared = mmap(nullptr, sizeof(TraceBoard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int gate[2];
  if (shared == MAP_FAILED || pipe(gate) != 0)
    throw journal::Error(std::string("a traced run can't start: ") + std::strerror(errno));
  auto& board = *new (shared) TraceBoard;
  const pid_t child = fork();
  if (child < 0) throw journal::Error(std::string("a traced run can't start: ") + std::strerror(errno));
  if (child != 0) {
    close(gate[0]);
    stay_behind(child, gate[1], board, folder);
  }
  close(gate[1]);
  char go = 0;
  while (read(gate[0], &go, 1) < 0 && errno == EINTR) {
  }
  close(gate[0]);
  if (go == 0) _exit(1);  // no process traces: the calling process has said why
  board.marks[0].kernel_id.store(static_cast<std::uint32_t>(getpid()), std::memory_order_release);
  return board;
}

}  // namespace blockyard::replay
