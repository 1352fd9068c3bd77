// Call stacks for reports: captured cheaply, made readable later.
#pragma once

#include <cstddef>

namespace blockyard::base {

/// Writes up to `room` return addresses of the calling thread, innermost first. Returns how many. Takes a few
/// microseconds; the first call in a process may allocate and load the unwinder.
std::size_t capture_stack(void** addresses, std::size_t room);

/// Whether a return address lies in this library: not in the program, nor in another copy of the library. O(sources of
/// the library).
bool is_own_code(const void* address);

/// Writes a return address as text with a closing 0, at most `room` bytes: `FUNCTION+0x1f (FILE)`, or `FILE+0x1234`
/// without a symbol. Reads the object's symbol table for names that are not exported, which takes milliseconds. May
/// allocate.
void describe_address(const void* address, char* text, std::size_t room);

}  // namespace blockyard::base
