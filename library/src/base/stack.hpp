// What reports are made of: text, and call stacks, captured cheaply and made readable later.
#pragma once

#include <cstddef>

namespace blockyard::base {

/// Writes text of at most 1,023 bytes to standard error, or to a file descriptor. Without stdio: the first report may
/// come before the C library's streams are ready. Allocates nothing.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);
[[gnu::format(printf, 2, 3)]] void say_to(int descriptor, const char* format, ...);

/// Writes up to `room` return addresses of the calling thread, innermost first. Returns how many. Takes a few
/// microseconds; the first call in a process may allocate and load the unwinder.
std::size_t capture_stack(void** addresses, std::size_t room);

/// Writes a return address as text with a closing 0, at most `room` bytes: `FUNCTION+0x1f (FILE)`, or `FILE+0x1234`
/// without a symbol. Reads the object's symbol table for names that are not exported, which takes milliseconds. May
/// allocate.
void describe_address(const void* address, char* text, std::size_t room);

}  // namespace blockyard::base
