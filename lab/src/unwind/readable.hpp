// Asks the kernel whether memory can be read, without reading it.
#pragma once

#include <cstdint>

namespace blockyard::unwind {

inline constexpr std::uint64_t page_bytes = 4096;

/// Whether the page that holds `address` can be read. One system call, about 100 ns; keeps errno.
bool is_readable(std::uint64_t address);

}  // namespace blockyard::unwind
