// Why: a library's handlers of fork may take a lock whose holder opens a file, and may allocate. The heap must not hold
// the list of streams or its own locks by then, although the library was loaded, and registered, before the heap's
// constructor ran.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "behaviour.hpp"

extern "C" void write_to_log();

int main() {
  std::atomic<bool> over{false};
  std::array<std::thread, 2> writers;
  for (std::thread& writer : writers) {
    writer = std::thread([&over] {
      while (!over.load(std::memory_order_relaxed)) {
        write_to_log();
      }
    });
  }
  for (int round = 0; round < 500; ++round) {
    const pid_t child = fork();
    behaviour::require(child >= 0, "fork failed");
    if (child == 0) {
      behaviour::end_with_parent();
      write_to_log();
      std::free(std::malloc(100'000));
      _exit(0);
    }
    int status = -1;
    behaviour::require(waitpid(child, &status, 0) == child && status == 0, "a forked child could not go on");
  }
  over = true;
  for (std::thread& writer : writers) {
    writer.join();
  }
  behaviour::require_sound_heap();
}
