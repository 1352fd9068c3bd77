#include "base/process.hpp"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>

#include "base/kept_errno.hpp"
#include "base/say.hpp"

namespace blockyard::base {

namespace {

bool (*is_reported)(const void* address) = nullptr;
void (*report_access)(const void* address) = nullptr;
struct sigaction handler_before {};

// What would have happened without us. A handler of the program's stays behind ours, which goes on watching.
void pass_on(int number, siginfo_t* facts, void* context) {
  if ((handler_before.sa_flags & SA_SIGINFO) != 0) {
    handler_before.sa_sigaction(number, facts, context);
  } else if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN) {
    handler_before.sa_handler(number);
  } else if (facts->si_code > 0) {
    sigaction(number, &handler_before, nullptr);  // the same instruction faults again, and ends the process
  } else if (handler_before.sa_handler == SIG_DFL) {
    sigaction(number, &handler_before, nullptr);
    raise(number);  // a signal that was sent comes once
  }
}

void on_fault(int number, siginfo_t* facts, void* context) {
  if (facts->si_code != SEGV_ACCERR || !is_reported(facts->si_addr)) {
    pass_on(number, facts, context);
    return;
  }
  sigaction(number, &handler_before, nullptr);  // a fault of the report's must not come back here
  report_access(facts->si_addr);
}

}  // namespace

int process_id() { return static_cast<int>(syscall(SYS_getpid)); }

bool shares_memory_with(int id) {
  const KeptErrno kept;
  return syscall(SYS_kcmp, process_id(), id, KCMP_VM, 0, 0) == 0;
}

int thread_id() { return static_cast<int>(syscall(SYS_gettid)); }

bool thread_has_ended(int id) {
  const KeptErrno kept;
  return syscall(SYS_tgkill, process_id(), id, 0) != 0 && errno == ESRCH;
}

unsigned threads_of_process() {
  constexpr int fields_between = 17;  // the name's end is the 2nd field's, the threads are the 20th
  const KeptErrno kept;
  char text[1024] = {};
  const long file = syscall(SYS_openat, AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file >= 0) {
    syscall(SYS_read, file, text, sizeof text - 1);
    syscall(SYS_close, file);
  }
  const char* at = std::strrchr(text, ')');
  for (int field = 0; at != nullptr && field <= fields_between; ++field) {
    at = std::strchr(at + 1, ' ');
  }
  unsigned threads = 0;
  if (at != nullptr) {
    std::from_chars(at + 1, std::end(text), threads);
  }
  return threads;
}

void write_bytes(int descriptor, const char* text, std::size_t bytes) {
  for (long written = 1; bytes != 0 && written > 0; text += written, bytes -= static_cast<std::size_t>(written)) {
    written = std::max(write(descriptor, text, bytes), 0L);
  }
}

// The C library's function may be the program's own, which allocates, as bash's.
const char* environment(const char* name) {
  const std::size_t length = std::strlen(name);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') {
      return *entry + length + 1;
    }
  }
  return nullptr;
}

// They come with every process from the kernel: no system call, no file.
std::array<std::uint64_t, 2> random_words() {
  std::array<std::uint64_t, 2> words{};
  if (const auto* const bytes = reinterpret_cast<const void*>(getauxval(AT_RANDOM)); bytes != nullptr) {
    std::memcpy(words.data(), bytes, sizeof words);
  }
  return words;
}

void report_forbidden_accesses(bool (*is_ours)(const void* address), void (*report)(const void* address)) {
  is_reported = is_ours;
  report_access = report;
  struct sigaction ours {};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGSEGV, &ours, &handler_before);
}

}  // namespace blockyard::base
