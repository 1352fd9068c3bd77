// trial-frames FRAMES MICROSECONDS [HOW]: each frame allocates a hundred blocks, computes for so long, and marks its
// end. HOW: plain (by default); child (a child process does it all); vsync (waits for the next 60th of a second); fails
// (ends with exit code 3); hangs; differs (prints its process number); none (marks nothing); threads (four at once mark
// FRAMES each, while eight children are forked, which mark one each).
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "blockyard/frame.h"

namespace {

constexpr long refresh_ns = 16'666'667;

long now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000L + now.tv_nsec;
}

void run(long frames, long microseconds, const char* how) {
  constexpr int blocks_per_frame = 100;
  for (long frame = 0; frame < frames; ++frame) {
    void* blocks[blocks_per_frame];
    for (int at = 0; at < blocks_per_frame; ++at) {
      blocks[at] = std::malloc(64 + static_cast<std::size_t>(at) * 16);
      std::memset(blocks[at], at, 64);
    }
    for (void* block : blocks) std::free(block);
    // A fixed amount of work, not a fixed time: what is slower shows.
    volatile double sum = 0;
    for (long step = 0; step < microseconds * 250; ++step) sum = sum + static_cast<double>(step);
    if (std::strcmp(how, "vsync") == 0) {
      const long next = (now_ns() / refresh_ns + 1) * refresh_ns;
      const timespec until{next / 1'000'000'000L, next % 1'000'000'000L};
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    }
    if (std::strcmp(how, "none") != 0) by_frame_mark();
  }
}

constexpr int crowd = 4;
constexpr int children = 8;
pthread_barrier_t begins;

void* mark(void* frames) {
  pthread_barrier_wait(&begins);
  for (long frame = *static_cast<const long*>(frames); frame > 0; --frame) by_frame_mark();
  return nullptr;
}

int run_threads(long frames) {
  pthread_t threads[crowd];
  pthread_barrier_init(&begins, nullptr, crowd + 1);
  for (pthread_t& one : threads) {
    if (pthread_create(&one, nullptr, mark, &frames) != 0) return 2;
  }
  pthread_barrier_wait(&begins);
  for (int child = 0; child < children; ++child) {
    if (fork() == 0) {
      by_frame_mark();
      _exit(0);
    }
  }
  for (const pthread_t one : threads) pthread_join(one, nullptr);
  int failed = 0;
  for (int status = 0; wait(&status) > 0;) failed |= status;
  return failed;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const char* const how = count > 3 ? arguments[3] : "plain";
  if (std::strcmp(how, "hangs") == 0) pause();
  if (std::strcmp(how, "threads") == 0) return run_threads(std::atol(arguments[1]));
  if (std::strcmp(how, "differs") == 0) std::printf("%d\n", static_cast<int>(getpid()));
  const pid_t child = std::strcmp(how, "child") == 0 ? fork() : 0;
  if (child > 0) {
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  }
  run(std::atol(arguments[1]), std::atol(arguments[2]), how);
  if (std::strcmp(how, "fails") == 0) {
    std::fprintf(stderr, "no level was found\n");
    return 3;
  }
  return 0;
}
