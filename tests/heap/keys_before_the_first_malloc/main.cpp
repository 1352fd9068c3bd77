// Why: a program's libraries may make so many keys before the first malloc that the heap's own is one of those whose
// values stand in a table that pthread_setspecific allocates. A thread whose first allocation is that table must still
// hand its heap on when it ends.
#include <pthread.h>

#include <array>
#include <thread>

#include "behaviour.hpp"

namespace {

std::array<pthread_key_t, 40> keys;

void make_keys() {
  for (pthread_key_t& key : keys) {
    pthread_key_create(&key, nullptr);
  }
}

// Before the constructors of libraries, which allocate.
[[gnu::section(".preinit_array"), gnu::used]] void (*const before_constructors)() = make_keys;

}  // namespace

int main() {
  for (int i = 0; i < 500; ++i) {
    std::thread([] {
      pthread_setspecific(keys.back(), &keys);
      std::free(std::malloc(100));
      std::free(std::malloc(512));
    }).join();
  }
  behaviour::require_sound_heap();
  behaviour::require(behaviour::statistics().heaps <= 8, "threads that ended did not hand their heaps on");
}
