// libblockyard-python-calls.so: counts what a thread of CPython asks Python's allocator for. It stands in front of the
// allocators of two of the three domains, `mem` and `obj`, from which objects and their buffers come, and hands each
// call on. What they pass to the third, `raw`, is theirs and would count twice.
#include <cstddef>
#include <cstdint>

#include "blockyard/detail/visibility.h"

extern "C" {

/// As PEP 445 defines it.
struct PyMemAllocatorEx {
  void* context;
  void* (*malloc)(void* context, std::size_t size);
  void* (*calloc)(void* context, std::size_t count, std::size_t size);
  void* (*realloc)(void* context, void* block, std::size_t size);
  void (*free)(void* context, void* block);
};

// The process's own: the library is loaded into a Python.
BY_WEAK void PyMem_GetAllocator(int domain, PyMemAllocatorEx* allocator);
BY_WEAK void PyMem_SetAllocator(int domain, PyMemAllocatorEx* allocator);

BY_API int by_python_calls_install();
BY_API void by_python_calls_begin();
BY_API void by_python_calls_end();
BY_API std::uint64_t by_python_calls();
BY_API std::uint64_t by_python_bytes();
}

namespace {

constexpr int domains[] = {1, 2};  // PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ
PyMemAllocatorEx real[2];
bool is_installed = false;

struct Counts {
  std::uint64_t calls;
  std::uint64_t bytes;
  bool counts;
};
thread_local Counts self{};

void count(std::size_t bytes) {
  if (!self.counts) return;
  ++self.calls;
  self.bytes += bytes;
}

const PyMemAllocatorEx& behind(void* context) { return *static_cast<PyMemAllocatorEx*>(context); }

void* count_malloc(void* context, std::size_t size) {
  count(size);
  return behind(context).malloc(behind(context).context, size);
}
void* count_calloc(void* context, std::size_t number, std::size_t size) {
  count(number * size);
  return behind(context).calloc(behind(context).context, number, size);
}
void* count_realloc(void* context, void* block, std::size_t size) {
  count(size);
  return behind(context).realloc(behind(context).context, block, size);
}
void pass_free(void* context, void* block) { behind(context).free(behind(context).context, block); }

}  // namespace

/// Once per process, under the interpreter's lock; it stays. Returns 0, or -1 where there is no CPython.
int by_python_calls_install() {
  if (PyMem_GetAllocator == nullptr || PyMem_SetAllocator == nullptr) return -1;
  if (is_installed) return 0;
  is_installed = true;
  for (int at = 0; at < 2; ++at) {
    PyMem_GetAllocator(domains[at], &real[at]);
    PyMemAllocatorEx ours{&real[at], count_malloc, count_calloc, count_realloc, pass_free};
    PyMem_SetAllocator(domains[at], &ours);
  }
  return 0;
}

/// From here to the end the calling thread's calls count, beginning with none.
void by_python_calls_begin() { self = {0, 0, true}; }
void by_python_calls_end() { self.counts = false; }
std::uint64_t by_python_calls() { return self.calls; }
std::uint64_t by_python_bytes() { return self.bytes; }
