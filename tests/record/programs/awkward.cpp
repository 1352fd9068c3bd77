// Allocates in awkward corners: before main, in a thread_local destructor, in atexit, in a library's constructor and
// destructor across dlclose, inside dlsym's failure, in a thread that ends at once.
#include <dlfcn.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

void* volatile sink;

void touch(std::size_t size) {
  sink = std::malloc(size);
  std::free(sink);
}

struct BeforeMain {
  BeforeMain() : block(std::malloc(800'001)) {}
  ~BeforeMain() {
    std::free(block);
    touch(800'002);
  }
  void* block;
} before_main;

struct InThread {
  void* block = nullptr;
  ~InThread() {
    std::free(block);
    touch(800'003);
  }
};
thread_local InThread in_thread;

void at_exit() { touch(800'004); }

void after_thread_locals(void* block) {
  std::free(block);
  touch(800'005);
}

}  // namespace

int main(int, char** arguments) {
  std::atexit(at_exit);
  pthread_key_t key;
  if (pthread_key_create(&key, after_thread_locals) != 0) return 1;
  for (int i = 0; i < 3; ++i) {
    std::thread([key] {
      in_thread.block = std::malloc(800'006);
      pthread_setspecific(key, std::malloc(800'007));
    }).join();
  }
  for (int i = 0; i < 2; ++i) {
    void* plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) return 2;
    auto* work = reinterpret_cast<void (*)()>(dlsym(plugin, "plugin_work"));
    if (work == nullptr) return 3;
    work();
    // The message that dlsym makes of its failure comes from malloc, inside the loader.
    if (dlsym(plugin, "no_such_symbol") != nullptr || dlerror() == nullptr) return 4;
    dlclose(plugin);
  }
  in_thread.block = std::malloc(800'008);
  return 0;
}
