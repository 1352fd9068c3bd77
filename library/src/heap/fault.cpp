#include "heap/fault.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "base/stack.hpp"

namespace blockyard::heap {

constinit thread_local bool says_no_stack __attribute__((tls_model("initial-exec"))) = false;

// Functions of the heap that are in no namespace of its own.
bool is_of_the_heap(const char* name) {
  constexpr std::array<const char*, 9> beginnings{"blockyard::",
                                                  "by_",
                                                  "(anonymous namespace)::allocate_freed",
                                                  "(anonymous namespace)::at_limit",
                                                  "(anonymous namespace)::free_elsewhere",
                                                  "(anonymous namespace)::allocate_small_slow",
                                                  "(anonymous namespace)::allocate_uncached",
                                                  "(anonymous namespace)::allocate_large",
                                                  "(anonymous namespace)::resize_or_move"};
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [=](const char* begin) { return std::strncmp(name, begin, std::strlen(begin)) == 0; });
}

void say_frames(void* const* frames, std::size_t count, const char* before) {
  bool inside = true;
  for (std::size_t i = 0; i < count; ++i) {
    char text[400];
    base::describe_address(frames[i], text, sizeof text);
    inside = inside && is_of_the_heap(text);
    if (!inside) {
      say("%s%s\n", before, text);
    }
  }
}

// Naming the frames allocates, from a heap that may be broken: a fault within that ends the program without more ado.
bool say_stack() {
  static std::atomic<bool> begun{false};
  if (says_no_stack) {
    return false;
  }
  if (begun.exchange(true)) {
    return false;
  }
  std::array<void*, 24> frames;
  say_frames(frames.data(), base::capture_stack(frames.data(), frames.size()));
  return true;
}

void report_fault(const char* what, const void* pointer) {
  say("blockyard: %s: %p\n", what, pointer);
  say_stack();
  std::abort();
}

void report_broken(const char* what) {
  say("blockyard: the heap itself is broken: %s\n", what);
  std::abort();
}

}  // namespace blockyard::heap
