// Why: most programs that a preload reaches hardly allocate: a shell script starts hundreds. None of them may pay for a
// reserve that it never uses. One that does take memory, on several threads, gets its reserve all the same.
#include <chrono>
#include <thread>
#include <vector>

#include "behaviour.hpp"

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

void require_little() {
  const by_heap_statistics now = behaviour::statistics();
  std::printf("%llu KiB resident, %llu committed\n", static_cast<unsigned long long>(now.resident >> 10),
              static_cast<unsigned long long>(now.committed >> 10));
  behaviour::require(now.committed < mib && now.resident < mib, "a program that hardly allocates holds a MiB and more");
}

}  // namespace

int main() {
  require_little();
  std::vector<void*> blocks;
  for (std::size_t size = 16; size < 20'000; size += size / 4) {
    blocks.push_back(std::malloc(size));
  }
  require_little();
  std::thread([&] {
    for (int i = 0; i < 4'000; ++i) {
      blocks.push_back(std::malloc(20'000));
    }
  }).join();
  while (behaviour::statistics().ready < 4 * mib) {
    blocks.push_back(std::malloc(20'000));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (void* block : blocks) {
    std::free(block);
  }
  behaviour::require_sound_heap();
}
