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
/// Lock-free; some microseconds.
std::uint32_t keep_stack();

/// A kept stack, of a number that keep_stack() returned on whatever thread. Of 0 none, which is empty.
Stack kept_stack(std::uint32_t number);

/// Readies the unwinder, whose first use allocates. Once, when the C library is ready.
void start_stacks();
/// Has keep_stack() keep stacks: a table of 9 MiB, populated as it fills. Once.
void start_stack_table();

/// While there is one, the calling thread takes no stack.
class NoStacks {
 public:
  NoStacks();
  ~NoStacks();
  NoStacks(const NoStacks&) = delete;
  NoStacks& operator=(const NoStacks&) = delete;
  /// Whether the calling thread has one.
  static bool here();

 private:
  const bool before_;
};

}  // namespace blockyard::checks
