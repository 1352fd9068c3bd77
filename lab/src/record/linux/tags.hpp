// A thread's tags (blockyard/tag.h). Each path of tags has a number in the process, which events carry. Levels get
// their numbers when they are pushed, or, where the thread was not recorded then, when its recording begins.
#pragma once

#include <cstddef>
#include <cstdint>

namespace blockyard::record {

/// Part of a thread's state. Trivial.
struct ThreadTags {
  static constexpr std::uint32_t most_levels = 64;  ///< deeper ones are only counted
  std::uint32_t depth;                              ///< levels
  std::uint32_t numbered;                           ///< levels that have a number
  std::uint32_t current;                            ///< the number of the last of them; 0: none
  std::uint32_t numbers[most_levels];
  std::uint64_t levels[most_levels];  ///< the name's address, or entered_level and the number of the path
};

/// The calling thread's recording has begun: all its tags get numbers, and the collector learns them. Call it under
/// Busy.
void number_all_tags();

/// The calling thread's path of tags as text, cut where it does not fit. Call it under Busy.
void write_tags(char* into, std::size_t capacity);

}  // namespace blockyard::record
