// Memory runs out and comes back. A separate program, so that no block exists before the limit.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "blockyard/block_allocator.hpp"
#include "expect.hpp"

namespace {

using namespace blockyard;

void limit_address_space(std::size_t more) {
  std::size_t pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  expect(file != nullptr && std::fscanf(file, "%zu", &pages) == 1, "statm");
  std::fclose(file);
  const rlim_t bytes = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + more;
  const rlimit limit{bytes, bytes};
  expect(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
}

void exhaust() {
  limit_address_space(std::size_t{700} << 20);
  BlockAllocator blocks(4096, 8);
  std::size_t count = 0;
  while (void* const block = blocks.allocate()) {
    std::memset(block, 1, 64);
    ++count;
  }
  expect(count > 1000, "a smaller window serves");
  expect(blocks.invariants_hold(), "invariants after exhaustion");
  expect(blocks.allocate() == nullptr, "still exhausted");
  blocks.reset();
  expect(blocks.allocate() != nullptr, "serves again after reset");
}

}  // namespace

int main() {
  exhaust();
  return 0;
}
