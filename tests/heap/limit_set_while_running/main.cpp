// Why: a program may limit its own address space, or be limited from outside, long after its start. The limit in force
// when the heap grows is the one that counts: malloc must fail with ENOMEM at it, threads must still start beside a
// heap that has used it up, and where the limit is raised the heap must grow again.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "behaviour.hpp"

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

void limit_address_space(rlim_t bytes) {
  rlimit limit{};
  behaviour::require(getrlimit(RLIMIT_AS, &limit) == 0, "RLIMIT_AS cannot be read");
  limit.rlim_cur = bytes;
  behaviour::require(setrlimit(RLIMIT_AS, &limit) == 0, "RLIMIT_AS cannot be set");
}

// pthread_create, whose failure is a result and no exception.
bool a_thread_starts() {
  pthread_t thread{};
  const auto allocate = [](void*) -> void* {
    std::free(std::malloc(100));
    return nullptr;
  };
  return pthread_create(&thread, nullptr, allocate, nullptr) == 0 && pthread_join(thread, nullptr) == 0;
}

void allocate_until_it_fails(std::vector<void*>& blocks, std::size_t size) {
  errno = 0;
  while (blocks.size() < blocks.capacity()) {
    void* const block = std::malloc(size);
    if (block == nullptr) {
      behaviour::require(errno == ENOMEM, "malloc failed without ENOMEM");
      return;
    }
    blocks.push_back(std::memset(block, 1, size));
  }
}

void require_that_a_limit_holds(std::size_t size, std::size_t limit_mib) {
  std::vector<void*> blocks;
  blocks.reserve(2 * limit_mib * mib / size);
  limit_address_space(limit_mib * mib);
  behaviour::require(a_thread_starts(), "no thread starts under a limit that leaves room for hundreds");
  allocate_until_it_fails(blocks, size);
  std::printf("%zu MiB in blocks of %zu KiB under a limit of %zu MiB\n", blocks.size() * size / mib, size / 1024,
              limit_mib);
  behaviour::require(blocks.size() * size < limit_mib * mib, "more was handed out than the limit allows");
  behaviour::require(blocks.size() * size > limit_mib * mib / 4 * 3, "the limit left less than three quarters");
  behaviour::require(a_thread_starts(), "no thread starts beside a heap that has used its limit up");
  const std::size_t under_limit = blocks.size();
  limit_address_space(RLIM_INFINITY);
  allocate_until_it_fails(blocks, size);
  behaviour::require(blocks.size() == blocks.capacity() && blocks.size() > under_limit,
                     "the heap does not grow where a limit was raised");
  for (void* block : blocks) {
    std::free(block);
  }
}

}  // namespace

// Each in a process of its own: what one has mapped stays the heap's when the next sets a lower limit.
int main() {
  struct Case {
    std::size_t block_bytes;
    std::size_t limit_mib;
  };
  for (const Case each : {Case{mib, 256}, Case{100'000, 384}, Case{500, 512}}) {
    const pid_t child = fork();
    if (child == 0) {
      behaviour::end_with_parent();
      require_that_a_limit_holds(each.block_bytes, each.limit_mib);
      behaviour::require_sound_heap();
      std::exit(0);
    }
    int status = -1;
    behaviour::require(waitpid(child, &status, 0) == child && status == 0, "a limit set at run time does not hold");
  }
  behaviour::require_sound_heap();
}
