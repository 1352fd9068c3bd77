// The memory that a walk may read: the stack on which a thread runs, from its stack pointer to where the stack begins.
#pragma once

#include <cstdint>
#include <cstring>

#include "unwind/readable.hpp"

namespace blockyard::unwind {

/// A stretch of a stack that can be read. Of the thread's own stack both ends are known; of any other (a fiber's, a
/// signal handler's) the upper end is found as the walk goes up: each page is asked for before its first word is read.
struct StackMemory {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool grows = false;

  bool contains(std::uint64_t address) const { return address >= low && address < high; }
  /// Makes everything below `end` readable, as far as it is; false when it is not.
  bool reach(std::uint64_t end) {
    if (end <= high) return true;
    if (!grows || end > high + most_growth) return false;
    while (high < end) {
      if (!is_readable(high)) return false;
      high += page_bytes;
    }
    return true;
  }
  bool load(std::uint64_t address, std::uint64_t& value) {
    if (__builtin_expect(address < low || address > high - sizeof value, 0)) {
      const std::uint64_t end = address + sizeof value;  // 0 where a wrong rule gave the last word of all
      if (address < low || address % sizeof value != 0 || end == 0 || !reach(end)) return false;
    }
    std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
    return true;
  }

 private:
  static constexpr std::uint64_t most_growth = std::uint64_t{1} << 20;
};

/// Finds the memory for a stack pointer. One for each thread.
class ThreadStack {
 public:
  /// O(1) once the thread's own stack is known, except where it has grown; a system call for a page in between.
  StackMemory memory_for(std::uint64_t rsp) {
    if (__builtin_expect(rsp >= low_ && rsp < high_, 1)) return {rsp, high_, false};
    return find(rsp);
  }
  /// Another thread runs now.
  void forget() { *this = ThreadStack(); }

 private:
  StackMemory find(std::uint64_t rsp);

  std::uint64_t low_ = 1;  ///< of what is known of the thread's own stack
  std::uint64_t high_ = 0;
  std::uint64_t other_low_ = 0;  ///< a stack that is not the thread's own
  std::uint64_t other_high_ = 0;
};

}  // namespace blockyard::unwind
