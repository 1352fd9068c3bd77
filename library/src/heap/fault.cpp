#include "heap/fault.hpp"

#include <array>
#include <atomic>
#include <cstdlib>

#include "base/stack.hpp"

namespace blockyard::heap {

constinit thread_local bool says_no_stack __attribute__((tls_model("initial-exec"))) = false;

void say_frames(void* const* frames, std::size_t count, const char* before) {
  std::size_t first = count;
  while (first > 0 && !base::is_own_code(frames[first - 1])) {
    --first;
  }
  for (std::size_t i = first; i < count; ++i) {
    char text[400];
    base::describe_address(frames[i], text, sizeof text);
    say("%s%s\n", before, text);
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
