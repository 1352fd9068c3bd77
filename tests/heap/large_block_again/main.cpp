// Why: who loads levels or textures frees a large block and asks for one of the same size again. It must get the same
// memory: also where the heap has given a part of it back in between, or made it stand ready, and next to a reserve. A
// list of free memory that rounds up looks past a block of just the right size.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "behaviour.hpp"

#pragma weak by_heap_reserve

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

std::size_t peak_bytes() {
  std::FILE* const status = std::fopen("/proc/self/status", "r");
  char line[200];
  std::size_t kib = 0;
  while (std::fgets(line, sizeof line, status) != nullptr) {
    std::sscanf(line, "VmHWM: %zu", &kib);
  }
  std::fclose(status);
  return kib << 10;
}

struct Case {
  std::size_t bytes;
  std::size_t reserve;
  bool second_thread;
  unsigned pause_us;  // the janitor gives free memory back after half a second to a second
};

int run(const Case& what) {
  if (what.second_thread) {
    std::thread([] { pause(); }).detach();
  }
  if (what.reserve != 0) {
    by_heap_reserve(what.reserve);
    while (behaviour::statistics().ready < what.reserve) {
      usleep(1'000);
    }
  }
  std::free(std::memset(std::malloc(1'100'000), 1, 1'100'000));  // a forked child begins without pages of code
  std::printf("%zu KB, ", peak_bytes() / 1000);
  const std::size_t before = peak_bytes();
  for (int turn = 0; turn < 4; ++turn) {
    void* const block = std::malloc(what.bytes);
    std::memset(block, 1, what.bytes);
    std::free(block);
    usleep(what.pause_us);
  }
  const std::size_t more = peak_bytes() - before;
  const double blocks = static_cast<double>(more) / static_cast<double>(what.bytes);
  std::printf("%zu KB, %zu MiB of reserve, %s, %u us: %.2f blocks\n", what.bytes / 1000, what.reserve / mib,
              what.second_thread ? "two threads" : "one thread", what.pause_us, blocks);
  std::fflush(stdout);
  constexpr std::size_t around_it = 128 << 10;  // pages of code and of the kernel's files
  return more <= what.bytes * 115 / 100 + around_it && by_heap_check() == nullptr ? 0 : 1;
}

}  // namespace

int main() {
  constexpr Case cases[] = {
      {1'500'000, 0, false, 0},          {3'000'000, 0, false, 0},
      {33'333'333, 0, false, 0},         {300'000'000, 0, false, 0},
      {1'000'000'000, 0, false, 0},      {10'000'000, 0, true, 0},
      {100'000'000, 0, true, 700'000},   {100'000'000, 0, false, 900'000},
      {100'000'000, 64 * mib, false, 0}, {100'000'000, 64 * mib, true, 100'000},
  };
  for (const Case& each : cases) {
    const pid_t child = fork();
    if (child == 0) {
      behaviour::end_with_parent();
      _exit(run(each));
    }
    int status = -1;
    behaviour::require(waitpid(child, &status, 0) == child && status == 0,
                       "a large block that is freed and asked for again takes more than its own memory");
  }
}
