// Why: most programs that a preload reaches hardly allocate: a shell script starts hundreds. None of them may pay for a
// reserve that it never uses, nor for pages that it never touches, and one that has one thread and small blocks gives
// back what it freed. One that does take memory gets its reserve all the same.
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "behaviour.hpp"

#pragma weak by_heap_trim

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

void require_little() {
  const by_heap_statistics now = behaviour::statistics();
  std::printf("%llu KiB resident, %llu committed\n", static_cast<unsigned long long>(now.resident >> 10),
              static_cast<unsigned long long>(now.committed >> 10));
  behaviour::require(now.committed < mib && now.resident < mib, "a program that hardly allocates holds a MiB and more");
}

// One block of each length that a thread may keep when it frees it, 0.8 MiB in all.
void require_no_collection_of_freed_blocks() {
  constexpr std::size_t page = 4096;
  std::vector<void*> blocks;
  for (std::size_t pages = 3; pages <= 20; ++pages) {
    blocks.push_back(std::memset(std::malloc(pages * page), 1, pages * page));
  }
  for (void* block : blocks) {
    std::free(block);
  }
  by_heap_trim();
  behaviour::require(behaviour::statistics().resident < mib / 2, "freed blocks of every length are kept");
}

// Blocks of 32 MiB are freed, and the program goes on with a few.
void require_given_back() {
  std::vector<void*> blocks(320'000);
  const auto allocate_and_free = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      blocks[i] = std::memset(std::malloc(100), 1, 100);
    }
    for (std::size_t i = 0; i < count; ++i) {
      std::free(blocks[i]);
    }
  };
  allocate_and_free(blocks.size());
  const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (behaviour::statistics().resident > 12 * mib) {
    behaviour::require(std::chrono::steady_clock::now() < last, "one thread's small blocks never go back");
    allocate_and_free(5'000);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

int main() {
  require_little();
  require_no_collection_of_freed_blocks();
  std::vector<void*> blocks;
  for (std::size_t size = 16; size < 20'000; size += size / 4) {
    blocks.push_back(std::malloc(size));
  }
  require_little();
  for (int i = 0; i < 40; ++i) {
    blocks.push_back(std::malloc(300'000));
  }
  behaviour::require(behaviour::statistics().resident < mib, "pages are in memory that nobody touched");
  require_given_back();
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
