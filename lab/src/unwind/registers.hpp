// The registers with which a walk starts.
#pragma once

#include <cstdint>

#include "unwind/frame_info.hpp"

namespace blockyard::unwind {

/// Where a walk starts: what a function's caller has once the function has returned.
struct Start {
  std::uint64_t return_address;
  std::uint64_t rsp;
  std::uint64_t rbp;
};

#if defined(__x86_64__)

/// `frame` is __builtin_frame_address(0) of a function: the start is its caller.
inline Start caller_of(const void* frame) {
  const auto* words = static_cast<const std::uint64_t*>(frame);
  return {words[1], reinterpret_cast<std::uint64_t>(words + 2), words[0]};
}

/// All registers that a call keeps, by their numbers in DWARF; the others are undefined.
struct Registers {
  std::uint64_t values[register_count];
};

extern "C" __attribute__((visibility("hidden"))) void by_unwind_capture(Registers* into);

#else

// The frame record of AArch64: the caller's frame pointer, then the link register.
inline Start caller_of(const void* frame) {
  const auto* words = static_cast<const std::uint64_t*>(frame);
  return {words[1], words[0], words[0]};
}

#endif

}  // namespace blockyard::unwind
