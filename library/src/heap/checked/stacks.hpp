// Where blocks were allocated and freed: call stacks, each kept once (or by each of several threads that come with it
// first at the same moment) and named by a number.
#pragma once

#include <cstddef>
#include <cstdint>

namespace blockyard::heap::checked {

inline constexpr std::size_t stack_depth = 15;  ///< frames kept of a stack, innermost first

/// Number of the calling thread's stack; 0 where none was taken: while the process starts, inside the taking of a
/// stack, when the table is full, or with BLOCKYARD_HEAP_STACKS=0. Lock-free; some microseconds.
std::uint32_t take_stack();

/// Copies a stack's frames, innermost first and null behind the last; returns how many. Of a number that take_stack()
/// returned, on whatever thread, all of them are there.
std::size_t read_stack(std::uint32_t stack, void* (&frames)[stack_depth]);

/// Prints a stack on standard error, one frame a line, frames of the heap itself left out. Milliseconds; allocates.
void print_stack(std::uint32_t stack);

/// Readies the table, and the unwinder, whose first use allocates. Once, when the C library is ready.
void start_stacks();

}  // namespace blockyard::heap::checked
