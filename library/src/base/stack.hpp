// Call stacks for reports: taken cheaply, made readable later.
#pragma once

#include <cstddef>

namespace blockyard::base {

/// Writes the return addresses of the calling thread's frames, innermost first, and returns how many. A few
/// microseconds; the first call in a process may allocate and load the unwinder.
std::size_t capture_stack(void** addresses, std::size_t room);

/// Writes `FUNCTION+0x1f (FILE)` for a return address as text with a closing 0, at most `room` bytes; where no symbol
/// is known `FILE+0x1234`. Reads the object's symbol table where its exported names don't tell: milliseconds. May
/// allocate.
void describe_address(const void* address, char* text, std::size_t room);

}  // namespace blockyard::base
