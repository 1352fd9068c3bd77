// Why: the heap grows in place, and a program may map hundreds of GiB beside it: a database its files, a runtime its
// own heap. Neither neighbours that came after the heap's start nor those that came before may make malloc fail.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <string>

#include "behaviour.hpp"

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t gib = std::size_t{1} << 30;

void map_neighbours(std::size_t bytes, int times) {
  for (int i = 0; i < times; ++i) {
    void* const place = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    behaviour::require(place != MAP_FAILED, "a neighbour can't be mapped");
  }
}

void require_that_the_heap_grows(void* (*allocate)(std::size_t)) {
  for (int i = 0; i < 400; ++i) {
    behaviour::require(allocate(mib) != nullptr, "malloc of 1 MiB fails beside large mappings");
  }
  behaviour::require(allocate(gib) != nullptr, "malloc of 1 GiB fails beside large mappings");
}

void grow_beside(std::size_t bytes, int times) {
  const pid_t child = fork();
  if (child == 0) {
    behaviour::end_with_parent();
    map_neighbours(bytes, times);
    require_that_the_heap_grows(std::malloc);
    behaviour::require_sound_heap();
    std::_Exit(0);
  }
  int status = -1;
  behaviour::require(waitpid(child, &status, 0) == child && status == 0, "the heap does not grow beside neighbours");
}

// In a process that the heap is not preloaded into, so that it starts after the neighbour.
[[noreturn]] void start_beside_a_neighbour(const char* library) {
  map_neighbours(600 * gib, 1);
  void* const opened = dlopen(library, RTLD_NOW);
  behaviour::require(opened != nullptr, "the library can't be opened");
  void* const found = dlsym(opened, "by_malloc");
  behaviour::require(found != nullptr, "the library has no by_malloc");
  require_that_the_heap_grows(reinterpret_cast<void* (*)(std::size_t)>(found));
  std::_Exit(0);
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2) {
    start_beside_a_neighbour(arguments[1]);
  }
  behaviour::require_sound_heap();
  grow_beside(512 * gib - 100 * mib, 1);  // nearly all of a gap that holds the largest region twice
  grow_beside(8 * gib, 125);
  const char* const preloaded = std::getenv("LD_PRELOAD");
  behaviour::require(preloaded != nullptr, "LD_PRELOAD does not name the heap");
  const std::string library = preloaded;
  unsetenv("LD_PRELOAD");
  execl("/proc/self/exe", arguments[0], library.c_str(), nullptr);
  behaviour::require(false, "the program can't start itself again");
}
