// What replay writes into a fresh block, as a program would.
#pragma once

#include <cstdint>
#include <cstring>

namespace blockyard::replay {

enum class Touch : std::uint8_t {
  nothing,
  first,  ///< the block's first byte
  page,   ///< a byte in every 4096-byte page that the block covers
  all,    ///< every byte
};

inline constexpr std::uintptr_t touched_page = 4096;

/// Writes to the `size` bytes at `begin`. By pages: the first byte, then the first byte of each further page. A step of
/// 4096 from the block's start would miss its last page whenever the block does not begin at a page.
inline void touch_bytes(Touch touch, char* begin, std::uint64_t size) {
  if (size == 0) return;
  if (touch == Touch::all) {
    std::memset(begin, 0xb7, size);
    asm volatile("" : : "r"(begin) : "memory");  // keeps the writes, though nothing reads them
    return;
  }
  volatile char* const first = begin;
  *first = 1;
  if (touch == Touch::first) return;
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uint64_t to_next_page = touched_page - address % touched_page;
  for (std::uint64_t at = to_next_page; at < size; at += touched_page) first[at] = 1;
}

}  // namespace blockyard::replay
