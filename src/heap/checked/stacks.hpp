// Where blocks were allocated and freed: call stacks, each kept once and named by a number.
#pragma once

#include <cstddef>
#include <cstdint>

namespace blockyard::heap::checked {

inline constexpr std::size_t stack_depth = 15;  ///< frames kept of a stack, innermost first

/// Number of the calling thread's stack; 0 where none was taken: while the process starts, inside the taking of a
/// stack, when the table is full, or with BLOCKYARD_HEAP_STACKS=0. Lock-free; some microseconds.
std::uint32_t take_stack();

/// Prints a stack on standard error, one frame a line, frames of the heap itself left out. Milliseconds; allocates.
void print_stack(std::uint32_t stack);

/// Readies the table, and the unwinder, whose first use allocates. Once, when the C library is ready.
void start_stacks();

}  // namespace blockyard::heap::checked
