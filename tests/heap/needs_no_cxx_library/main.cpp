// Why: most programs that a preload reaches are C programs, and loading a C++ library costs each of them more than a
// MiB. One of their plug-ins may be C++ all the same: operator new is the heap's there, too. (This program is C++, but
// needs nothing of the library.)
#include <dlfcn.h>

#include "behaviour.hpp"

int main() {
  behaviour::require(dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD) == nullptr, "the heap loads a C++ library");
  void* const plugin = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
  behaviour::require(plugin != nullptr, "the plug-in could not be loaded");
  const auto broken = reinterpret_cast<const char* (*)()>(dlsym(plugin, "broken_in_plugin"));
  behaviour::require(broken != nullptr, "the plug-in has no broken_in_plugin");
  const char* const sentence = broken();
  behaviour::require(sentence == nullptr, sentence);
  behaviour::require_sound_heap();
}
