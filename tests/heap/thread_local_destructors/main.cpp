// Why: C++ thread_local destructors and pthread keys free (and allocate) while a thread's own heap is being put away,
// in an order that nobody controls. Nothing may leak a heap a thread, and no block may be lost.
#include <pthread.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "behaviour.hpp"

namespace {

struct Holder {
  std::vector<std::string> strings;
  ~Holder() {
    strings.clear();
    strings.assign(50, std::string(100, 'd'));  // allocates again, during the thread's end
  }
};

thread_local Holder holder;

pthread_key_t key;

// POSIX calls this again as long as it sets a value, in at least four rounds, however long that goes on: allocate in
// each of them, in the last one too.
void on_key(void* value) {
  std::free(std::malloc(300));
  std::free(std::malloc(30'000));
  pthread_setspecific(key, value);
}

}  // namespace

int main() {
  behaviour::require(pthread_key_create(&key, on_key) == 0, "no key to be had");
  for (int i = 0; i < 500; ++i) {
    std::thread([] {
      holder.strings.assign(100, std::string(200, 't'));
      pthread_setspecific(key, reinterpret_cast<void*>(std::uintptr_t{1}));
    }).join();
  }
  behaviour::require_sound_heap();
  // One thread lives at a time, so a few heaps serve them all: a heap that was not parked would show here.
  behaviour::require(behaviour::statistics().heaps <= 8, "threads that ended did not hand their heaps on");
}
