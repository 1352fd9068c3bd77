// A shared object whose thread_local owns memory, and which hands blocks to the program that loads it.
#include <cstdlib>
#include <string>

namespace {
thread_local std::string keeper;
}

extern "C" __attribute__((visibility("default"))) void* plugin_make(std::size_t size) {
  keeper.assign(500, 'k');
  return std::malloc(size);
}
