// Prints the nanoseconds that a push and pop of a tag take, halved. It links neither the library nor the recorder.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "blockyard/tag.hpp"

namespace {

double now_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace

int main(int count, char** arguments) {
  const long rounds = count > 1 ? std::atol(arguments[1]) : 20'000'000;
  std::free(std::malloc(1));  // registers the thread with the recorder, if there is one
  const blockyard::tag outer("frame");
  const double begin = now_ns();
  for (long i = 0; i < rounds; ++i) {
    const blockyard::tag inner("physics");
    asm volatile("" ::: "memory");
  }
  std::printf("%.3f\n", (now_ns() - begin) / (2.0 * static_cast<double>(rounds)));
  return 0;
}
