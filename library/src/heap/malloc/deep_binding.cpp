// dlopen without RTLD_DEEPBIND. A library opened so takes malloc and free from the C library, not from a heap that is
// preloaded or linked: it would free blocks of the one in the other. PHP opens its extensions so. What such a library
// defines itself may then give way to the program's definition, as with any other library.
#include <dlfcn.h>

extern "C" __attribute__((visibility("default"))) void* dlopen(const char* file, int mode) noexcept {
  using Open = void*(const char*, int) noexcept;  // what may throw is called, not jumped to
  auto* const next = reinterpret_cast<Open*>(dlsym(RTLD_NEXT, "dlopen"));
  if (next == nullptr) {
    return nullptr;  // a static program: this is its only dlopen
  }
  // The loader takes the library path of who called, by the return address: this must become a jump (CMakeLists.txt).
  return next(file, mode & ~RTLD_DEEPBIND);
}
