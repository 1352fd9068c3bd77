// Why: under RLIMIT_AS, as batch systems set it, the heap must take a smaller region, fail with NULL and ENOMEM when
// that is used up, and serve again after a free. The limit is set in a fresh process: the region is reserved at its
// start.
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "behaviour.hpp"

int main(int count, char** arguments) {
  if (count == 1) {
    const rlimit limit{rlim_t{1} << 30, rlim_t{1} << 30};
    behaviour::require(setrlimit(RLIMIT_AS, &limit) == 0, "RLIMIT_AS cannot be set");
    execl("/proc/self/exe", arguments[0], "limited", nullptr);
    behaviour::require(false, "the program could not be started again");
  }
  std::vector<void*> blocks;
  blocks.reserve(4096);
  const std::size_t size = std::size_t{1} << 20;
  errno = 0;
  for (;;) {
    void* const block = std::malloc(size);
    if (block == nullptr) {
      break;
    }
    std::memset(block, 1, size);
    blocks.push_back(block);
    behaviour::require(blocks.size() < 1024, "a process limited to 1 GiB got more than that");
  }
  behaviour::require(errno == ENOMEM, "malloc failed without ENOMEM");
  behaviour::require(blocks.size() >= 200, "a process limited to 1 GiB got less than 200 MiB");
  errno = 0;
  behaviour::require(std::calloc(300, size) == nullptr && errno == ENOMEM,
                     "calloc beyond the limit did not fail with ENOMEM");
  for (std::size_t index = 0; index < blocks.size(); index += 2) {
    std::free(blocks[index]);
    blocks[index] = nullptr;
  }
  for (std::size_t index = 0; index < blocks.size(); index += 2) {
    blocks[index] = std::malloc(size);
    behaviour::require(blocks[index] != nullptr, "memory that was freed could not be had again");
  }
  for (void* block : blocks) {
    std::free(block);
  }
  behaviour::require_sound_heap();
}
