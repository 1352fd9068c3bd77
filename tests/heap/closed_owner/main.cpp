// Why: blocks outlive the shared object that allocated them, and its thread_local destructors run around dlclose.
#include <dlfcn.h>

#include <cstring>
#include <thread>
#include <vector>

#include "behaviour.hpp"

int main() {
  std::vector<void*> blocks;
  for (int round = 0; round < 50; ++round) {
    void* const plugin = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
    behaviour::require(plugin != nullptr, "the plug-in could not be loaded");
    auto* const make = reinterpret_cast<void* (*)(std::size_t)>(dlsym(plugin, "plugin_make"));
    behaviour::require(make != nullptr, "the plug-in has no plugin_make");
    std::thread([&] {
      for (std::size_t size = 1; size < 20000; size = size * 3 + 1) {
        blocks.push_back(std::memset(make(size), round, size));
      }
    }).join();
    dlclose(plugin);
  }
  for (void* block : blocks) {
    std::free(block);
  }
  behaviour::require_sound_heap();
}
