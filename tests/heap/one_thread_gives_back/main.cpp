// Why: a program with one thread that freed gigabytes, and goes on with small blocks or medium ones, or waits, is as
// much in the way of others as any. Somebody must give the memory back: the janitor, or the thread itself where there
// may be none. And a calloc of what was freed must not write all of it: who asks so may touch little.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "behaviour.hpp"

#pragma weak by_heap_prefault

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

using behaviour::resident_bytes;

// `before` is resident of the program itself: in qemu half a gigabyte.
void allocate_and_free(std::size_t bytes, std::size_t each, std::size_t before) {
  std::vector<void*> blocks(bytes / each);
  for (void*& block : blocks) {
    block = std::memset(std::malloc(each), 1, each);
  }
  behaviour::require(resident_bytes() >= before + bytes, "what was written to is not resident");
  for (void* block : blocks) {
    std::free(block);
  }
}

// Calls of such sizes go on meanwhile: none, where the most is 0.
int require_given_back(std::size_t each, std::size_t least, std::size_t most, bool sandboxed) {
  if (sandboxed) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);  // which announces that system calls will be forbidden
  }
  const std::size_t before = resident_bytes();
  allocate_and_free(400 * mib, each, before);
  std::vector<void*> live(4096);
  unsigned seed = 1;
  while (resident_bytes() > before + 120 * mib) {
    for (int call = 0; call < 1'000 && most != 0; ++call) {
      seed = seed * 1664525u + 1013904223u;
      void*& place = live[(seed >> 8) % live.size() % (most > 10'000 ? 64 : 4096)];
      std::free(place);
      place = std::malloc(least + (seed >> 8) % (most - least));
    }
    usleep(10'000);
  }
  behaviour::require(!sandboxed || behaviour::thread_of_the_janitor() == 0, "a janitor starts in a sandbox");
  return by_heap_check() == nullptr ? 0 : 1;
}

int require_sparse_calloc() {
  constexpr std::size_t bytes = 400 * mib;
  const std::size_t before = resident_bytes();
  std::free(std::memset(std::malloc(bytes), 1, bytes));
  char* const block = static_cast<char*>(std::calloc(1, bytes));
  behaviour::require(resident_bytes() < before + bytes / 4, "a calloc of what was freed is written whole");
  for (std::size_t at = 0; at < bytes; at += 1'000) {
    behaviour::require(block[at] == 0, "a calloc of what was freed is not zero");
  }
  std::free(block);
  return 0;
}

template <class Run>
void run_in_child(Run&& run) {
  const pid_t child = fork();
  if (child == 0) {
    behaviour::end_with_parent();
    _exit(run());
  }
  int status = -1;
  behaviour::require(waitpid(child, &status, 0) == child && status == 0, "the child failed");
}

}  // namespace

int main() {
  for (const bool sandboxed : {false, true}) {
    for (const std::size_t each : {std::size_t{300}, std::size_t{50'000}, mib, 100 * mib}) {
      std::printf("blocks of %zu, %s\n", each, sandboxed ? "in a sandbox" : "free");
      std::fflush(stdout);
      run_in_child([=] { return require_given_back(each, 16, 1'016, sandboxed); });
      run_in_child([=] { return require_given_back(each, 20'000, 120'000, sandboxed); });
      if (!sandboxed) {
        run_in_child([=] { return require_given_back(each, 0, 0, sandboxed); });
      }
    }
  }
  run_in_child(require_sparse_calloc);
  behaviour::require_sound_heap();
}
