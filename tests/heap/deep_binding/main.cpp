// Why: a library that is opened with RTLD_DEEPBIND, as PHP opens its extensions, takes malloc and free from the C
// library. Blocks that it and the program hand each other would be freed in the wrong heap. And the loader must still
// find what a library opens along that library's own path.
#include <dlfcn.h>

#include <cstring>

#include "behaviour.hpp"

extern "C" void* open_module();

int main() {
  void* const module = open_module();
  behaviour::require(module != nullptr, dlerror());
  const auto allocate = reinterpret_cast<void* (*)(std::size_t)>(dlsym(module, "module_allocate"));
  const auto release = reinterpret_cast<void (*)(void*)>(dlsym(module, "module_free"));
  for (std::size_t size = 10; size < 1'000'000; size *= 3) {
    void* const theirs = allocate(size);
    std::memset(theirs, 1, size);
    std::free(theirs);
    release(std::malloc(size));
  }
  behaviour::require_sound_heap();
}
