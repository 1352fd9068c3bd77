#include "checks/report.hpp"

#include <array>
#include <atomic>
#include <cstdlib>

#include "base/process.hpp"
#include "base/say.hpp"
#include "base/stack.hpp"

namespace blockyard::checks {

using base::say;

constinit thread_local bool says_no_stack __attribute__((tls_model("initial-exec"))) = false;

namespace {

constinit std::atomic<bool> has_begun{false};

void say_call(const char* what, const Known::Call& call) {
  say("  %s by thread %u, at\n", what, call.thread);
  std::size_t count = 0;
  while (count < call.stack.size() && call.stack[count] != nullptr) {
    ++count;
  }
  if (count == 0) {
    say("    (no stack was taken)\n");
  }
  say_frames(call.stack.data(), count, "    ");
}

}  // namespace

Known::Call this_call() { return {static_cast<std::uint32_t>(base::thread_id()), take_stack()}; }

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

void report_fault(const char* what, const void* pointer, const Known* known) {
  say("blockyard: %s: %p\n", what, pointer);
  // Naming the frames allocates, from a heap that may be broken: a fault within that ends the program without more ado.
  if (says_no_stack || has_begun.exchange(true)) {
    std::abort();
  }
  const NoStacks within;
  std::array<void*, 24> frames;
  const std::size_t count = base::capture_stack(frames.data(), frames.size());
  if (known == nullptr) {
    say_frames(frames.data(), count);
    std::abort();
  }
  say("  by thread %d, at\n", base::thread_id());
  say_frames(frames.data(), count, "    ");
  say("  the block has %zu bytes, at %p\n", known->size, known->block);
  say_call("allocated", known->allocated);
  if (known->freed.thread != 0) {
    say_call("freed", known->freed);
  }
  std::abort();
}

}  // namespace blockyard::checks
