// What happens when a program breaks malloc's contract in a way that the heap notices.
#pragma once

#include <cstddef>

#include "base/say.hpp"

namespace blockyard::heap {

using base::say;

/// Of the background thread, whose calls say nothing: the unwinder needs a thread that the C library knows.
extern constinit thread_local bool says_no_stack __attribute__((tls_model("initial-exec")));

/// Says the calling thread's stack, frames of the heap left out. False: a fault came while it was doing so before.
bool say_stack();
/// Likewise of a stack that was captured earlier; `before` begins each line.
void say_frames(void* const* frames, std::size_t count, const char* before = "  ");

/// Says what was wrong with `pointer` on standard error, and the stack that did it, and aborts. Call it without a
/// lock of the heap: naming the frames allocates.
[[noreturn]] void report_fault(const char* what, const void* pointer);

/// Says that the heap broke a promise of its own, and aborts. Allocates nothing, may be called under its locks.
[[noreturn]] void report_broken(const char* what);

}  // namespace blockyard::heap
