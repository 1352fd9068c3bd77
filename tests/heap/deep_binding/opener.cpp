// A library that opens a module by its name alone: it lies where only this library's own path leads.
#include <dlfcn.h>

extern "C" __attribute__((visibility("default"))) void* open_module() {
  void* const module = dlopen("libheap_deep_binding_module.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  __asm__ volatile("" : : : "memory");  // no jump to dlopen
  return module;
}
