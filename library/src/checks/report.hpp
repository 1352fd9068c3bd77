// What is said when a program breaks an allocator's contract in a way that somebody notices, before it ends.
#pragma once

#include <cstddef>
#include <cstdint>

#include "checks/stacks.hpp"

namespace blockyard::checks {

/// Of threads that the C library does not know, which the unwinder needs: reports say no stack.
extern constinit thread_local bool says_no_stack __attribute__((tls_model("initial-exec")));

/// Says a stack that was captured, from the first frame behind the library's own on; `before` begins each line.
void say_frames(void* const* frames, std::size_t count, const char* before = "  ");

/// What is known of a block: where it lies, its bytes, and who allocated and freed it.
struct Known {
  struct Call {
    std::uint32_t thread = 0;
    Stack stack{};
  };
  const void* block = nullptr;
  std::size_t size = 0;
  Call allocated;
  Call freed;  ///< thread 0: it is live
};

/// Says what was wrong with `pointer` on standard error, and the stack that did it, and what is known of its block (may
/// be null). Aborts. Call it without a lock of the heap: naming the frames allocates.
[[noreturn]] void report_fault(const char* what, const void* pointer, const Known* known = nullptr);

/// What the calling thread does now.
Known::Call this_call();

}  // namespace blockyard::checks
