// Why: three threads that hold one lock each and wait for the next. fork waits for the C library's list of streams,
// fflush(NULL) holds that list and waits for a stream, and getline holds the stream while it grows its buffer by
// realloc. What the heap holds across a fork must not close that circle.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "behaviour.hpp"

namespace {

std::atomic<bool> over{false};

void flush_all() {
  while (!over.load(std::memory_order_relaxed)) {
    std::fflush(nullptr);
  }
}

// Each line is so long that the buffer becomes one of whole pages, which are allocated under the lock.
void read_long_lines(std::FILE* file) {
  while (!over.load(std::memory_order_relaxed)) {
    std::rewind(file);
    char* line = nullptr;
    std::size_t room = 0;
    while (getline(&line, &room, file) > 0) {
      std::free(line);
      line = nullptr;
      room = 0;
    }
    std::free(line);
  }
}

}  // namespace

int main() {
  std::FILE* const file = std::tmpfile();
  behaviour::require(file != nullptr, "there is no temporary file");
  for (std::size_t length = 20'000; length < 400'000; length += 37'000) {
    std::fputs((std::string(length, 'x') + "\n").c_str(), file);
  }
  std::thread flusher(flush_all);
  std::thread reader(read_long_lines, file);
  for (int round = 0; round < 500; ++round) {
    const pid_t child = fork();
    behaviour::require(child >= 0, "fork failed");
    if (child == 0) {
      behaviour::end_with_parent();
      // The streams are the child's too.
      std::free(std::malloc(100'000));
      std::fflush(nullptr);
      std::FILE* const another = std::fopen("/dev/null", "w");
      _exit(another != nullptr && std::fputs("written", another) >= 0 && std::fclose(another) == 0 ? 0 : 1);
    }
    int status = -1;
    behaviour::require(waitpid(child, &status, 0) == child && status == 0, "a forked child could not use a stream");
  }
  over = true;
  flusher.join();
  reader.join();
  std::fclose(file);
  behaviour::require_sound_heap();
}
