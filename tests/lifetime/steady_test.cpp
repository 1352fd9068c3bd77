// The frames of a steady program make no system calls and take no page faults. Both are counted, not timed.
#include <gtest/gtest.h>

#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "blockyard/lifetime.hpp"

namespace {

using namespace blockyard;

constexpr int job_count = 3000;

// A game's frame: temp blocks, more than the first region holds, and jobs that live two frames.
void frame(std::vector<void*>& older, std::vector<void*>& newer) {
  for (int i = 0; i < 5000; ++i) {
    std::memset(temp_allocate(100, 16), 1, 100);
  }
  for (int i = 0; i < job_count; ++i) {
    newer.push_back(allocate(static_cast<std::size_t>(16 + i % 300), 16, Lifetime::temp_job));
  }
  newer.push_back(allocate(200'000, 16, Lifetime::temp_job));
  std::memset(newer.back(), 1, 200'000);
  for (void* block : older) {
    deallocate(block, Lifetime::temp_job);
  }
  older.clear();
  older.swap(newer);
  by_frame_end(200'000);
}

class SteadyProgram {
 public:
  SteadyProgram() {
    older_.reserve(job_count + 1);
    newer_.reserve(job_count + 1);
    for (int i = 0; i < 20; ++i) {
      run();
    }
  }
  void run() { frame(older_, newer_); }

 private:
  std::vector<void*> older_;
  std::vector<void*> newer_;
};

long minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

TEST(SteadyProgram, its_frames_take_no_page_fault) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "SKIPPED under a sanitizer, whose shadow memory faults";
#endif
  SteadyProgram program;
  const long before = minor_faults();
  for (int i = 0; i < 50; ++i) {
    program.run();
  }
  EXPECT_EQ(minor_faults() - before, 0);
}

TEST(SteadyProgram, its_frames_make_no_system_call) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "SKIPPED under a sanitizer, which makes its own";
#endif
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) {
      _exit(77);
    }
    SteadyProgram program;
    raise(SIGSTOP);  // from here on the parent counts
    for (int i = 0; i < 50; ++i) {
      program.run();
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "SKIPPED: ptrace is not allowed here, system calls were NOT counted";
  }
  ASSERT_TRUE(WIFSTOPPED(status));
  ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  int stops = 0;
  for (;;) {
    ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    waitpid(child, &status, 0);
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      break;
    }
    stops += WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80);
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  // The two stops left are the end of raise() and the beginning of exit.
  EXPECT_LE(stops, 2);
}

}  // namespace
