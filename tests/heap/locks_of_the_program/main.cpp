// Why: whoever allocates may hold a lock that others need to start a thread, or to look at the loaded libraries: a tool
// that wraps pthread_create and keeps a list of threads, a profiler in dl_iterate_phdr. The heap may start its janitor
// in any allocation, and must wait for none of these locks; nor does the janitor count as one of the program's threads.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "behaviour.hpp"

namespace {

pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
std::atomic<int> created{0};

void churn() {
  static void* blocks[128];
  for (void*& block : blocks) {
    block = std::memset(std::malloc(400'000), 1, 400'000);
  }
  for (void* block : blocks) {
    std::free(block);
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* attributes,
                                                                     void* (*run)(void*), void* argument) noexcept {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  auto* const next = reinterpret_cast<Create*>(dlsym(RTLD_NEXT, "pthread_create"));
  pthread_mutex_lock(&registry);
  ++created;
  const int result = next(thread, attributes, run, argument);
  pthread_mutex_unlock(&registry);
  return result;
}

int main() {
  // The loader's lock is held by this thread while another allocates.
  std::atomic<bool> over{false};
  std::thread worker([&] {
    pthread_mutex_lock(&registry);
    for (int turn = 0; turn < 20; ++turn) {
      churn();
    }
    pthread_mutex_unlock(&registry);
    over = true;
  });
  dl_iterate_phdr(
      [](dl_phdr_info*, std::size_t, void* is_over) {
        while (!*static_cast<std::atomic<bool>*>(is_over)) {
          usleep(100);
        }
        return 1;
      },
      &over);
  worker.join();
  while (behaviour::thread_of_the_janitor() == 0) {
    pthread_mutex_lock(&registry);
    churn();
    pthread_mutex_unlock(&registry);
  }
  behaviour::require(created == 1, "the janitor was started by the program's pthread_create");
  behaviour::require_sound_heap();
}
