// Why: a profiler's timer interrupts malloc and free at any instruction. The handler allocates nothing (malloc is not
// async-signal-safe), but it may read errno and take long, and every system call of the heap may return EINTR.
#include <sys/time.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "behaviour.hpp"

namespace {
volatile std::sig_atomic_t signals = 0;
void on_signal(int) {
  const int saved = errno;
  signals = signals + 1;
  errno = EINTR;
  errno = saved;
}
}  // namespace

int main() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval every{{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &every, nullptr);
  std::vector<unsigned char*> live(500);
  std::vector<std::size_t> sizes(live.size());
  unsigned seed = 7;
  for (int i = 0; i < 2000000 || signals < 50; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const std::size_t index = (seed >> 8) % live.size();
    if (live[index] != nullptr) {
      behaviour::require(live[index][0] == index % 251 && live[index][sizes[index] - 1] == index % 251,
                         "a block changed while it was live");
    }
    std::free(live[index]);
    sizes[index] = 1 + (seed >> 12) % ((seed >> 29) == 0 ? 100000 : 800);
    live[index] = static_cast<unsigned char*>(std::malloc(sizes[index]));
    live[index][0] = live[index][sizes[index] - 1] = static_cast<unsigned char>(index % 251);
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  behaviour::require_sound_heap();
}
