// What is said when a program breaks an allocator's contract in a way that somebody notices, before it ends.
//
// Call stacks for reports: taken on the spot, or kept once each in a table and named by a number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace blockyard::checks {

/// Frames, innermost first, null behind the last.
using Stack = std::array<void*, 15>;

/// Takes the calling thread's stack. It is empty before start_stacks(), and inside of the taking or the printing of
/// one, since both may allocate. Some microseconds.
Stack take_stack();

/// Number of the calling thread's stack in the table; 0 where none was taken, the table is full, or there is none.
/// Lock-free; some microseconds; keeps errno.
std::uint32_t keep_stack();

/// A kept stack, of a number that keep_stack() returned on whatever thread. Of 0 none, which is empty.
Stack kept_stack(std::uint32_t number);

/// Readies the unwinder, whose first use allocates. Once, when the C library is ready.
void start_stacks();
/// Has keep_stack() keep stacks: a table of 9 MiB, populated as it fills. Once.
void start_stack_table();

/// While there is one, the calling thread takes no stack, and its reports say none: of threads that the C library does
/// not know, which the unwinder needs, and inside of the unwinder.
class NoStacks {
 public:
  NoStacks();
  ~NoStacks();
  NoStacks(const NoStacks&) = delete;
  NoStacks& operator=(const NoStacks&) = delete;
  /// Whether the calling thread has one.
  static bool here();
  /// The thread-local variable that says so.
  static const void* variable();

 private:
  const bool before_;
};

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
