// Why: a tool that is preloaded, or the program itself, may have its own mmap, madvise, getenv or clock_gettime, and
// these may allocate: a tracer formats a line, bash keeps its own environment. A heap that calls them while it readies
// itself, or under its own lock, would wait for itself.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdarg>
#include <cstring>

#include "behaviour.hpp"

namespace {

int calls = 0;

void allocate() {
  ++calls;
  std::free(std::memset(std::malloc(100), 1, 100));
  std::free(std::memset(std::malloc(100'000), 1, 100'000));
}

}  // namespace

extern "C" {

BY_API void* mmap(void* place, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  allocate();
  return reinterpret_cast<void*>(syscall(SYS_mmap, place, bytes, protection, flags, file, offset));
}
BY_API int munmap(void* place, std::size_t bytes) noexcept {
  allocate();
  return static_cast<int>(syscall(SYS_munmap, place, bytes));
}
BY_API int madvise(void* place, std::size_t bytes, int advice) noexcept {
  allocate();
  return static_cast<int>(syscall(SYS_madvise, place, bytes, advice));
}
BY_API int mprotect(void* place, std::size_t bytes, int protection) noexcept {
  allocate();
  return static_cast<int>(syscall(SYS_mprotect, place, bytes, protection));
}
BY_API int clock_gettime(clockid_t clock, timespec* now) noexcept {
  allocate();
  return static_cast<int>(syscall(SYS_clock_gettime, clock, now));
}
BY_API char* getenv(const char* name) noexcept {
  allocate();
  const std::size_t length = std::strlen(name);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') {
      return *entry + length + 1;
    }
  }
  return nullptr;
}

}  // extern "C"

int main() {
  void* blocks[200];
  for (int turn = 0; turn < 3; ++turn) {
    for (void*& block : blocks) {
      block = std::memset(std::malloc(500'000), 1, 500'000);
    }
    for (void* block : blocks) {
      std::free(block);
    }
  }
  const char* const home = getenv("PATH");
  behaviour::require(home == nullptr || calls > 0, "the program's own functions are not called at all");
  behaviour::require_sound_heap();
}
