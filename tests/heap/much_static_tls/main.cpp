// Why: the C library puts a program's thread-local variables into the stack of each thread. Programs with more of them
// than the janitor's stack holds must have a janitor all the same.
#include <thread>

#include "behaviour.hpp"

namespace {
thread_local volatile char much[400'000];
}

int main() {
  much[0] = 1;
  behaviour::ask_for_a_janitor();
  while (behaviour::thread_of_the_janitor() == 0) {
    std::free(std::malloc(std::size_t{3} << 20));
    void* blocks[64];
    for (void*& block : blocks) {
      block = std::malloc(100'000);
    }
    for (void* block : blocks) {
      std::free(block);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  behaviour::require_sound_heap();
}
