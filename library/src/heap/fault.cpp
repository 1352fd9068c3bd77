#include "heap/fault.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/stack.hpp"

namespace blockyard::heap {

void say(const char* text) {
  const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(written);
}

namespace {

// Naming the frames allocates, from a heap that may be broken: a fault within that ends the program without more ado.
void say_stack() {
  static std::atomic<bool> begun{false};
  if (begun.exchange(true)) {
    return;
  }
  std::array<void*, 24> frames;
  const std::size_t count = base::capture_stack(frames.data(), frames.size());
  bool inside = true;
  for (std::size_t i = 0; i < count; ++i) {
    char text[400];
    base::describe_address(frames[i], text, sizeof text);
    inside = inside && (std::strstr(text, "blockyard::") != nullptr || std::strncmp(text, "by_", 3) == 0 ||
                        std::strncmp(text, "(anonymous namespace)::free_elsewhere", 37) == 0);
    if (!inside) {
      say("  ");
      say(text);
      say("\n");
    }
  }
}

}  // namespace

void report_fault(const char* what, const void* pointer) {
  char line[256];
  std::snprintf(line, sizeof line, "blockyard: %s: %p\n", what, pointer);
  say(line);
  say_stack();
  std::abort();
}

void report_broken(const char* what) {
  say("blockyard: the heap itself is broken: ");
  say(what);
  say("\n");
  std::abort();
}

}  // namespace blockyard::heap
