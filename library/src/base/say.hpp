// Text for whoever runs the program: reports and warnings.
#pragma once

#include <cstddef>

namespace blockyard::base {

/// A file descriptor.
inline constexpr int standard_error = 2;

/// Writes text of at most 1,023 bytes to standard error, or to a file descriptor. Without stdio: the first report may
/// come before the C library's streams are ready. Allocates nothing.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);
[[gnu::format(printf, 2, 3)]] void say_to(int descriptor, const char* format, ...);

/// Writes as many bytes as the descriptor takes.
void write_bytes(int descriptor, const char* text, std::size_t bytes);

}  // namespace blockyard::base
