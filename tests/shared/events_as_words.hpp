/// What events are, a word each: "a24", "z24" (calloc), "m64:24" (aligned), "f0", "r0>1:24", "|" (a mark).
#pragma once

#include <span>
#include <string>

#include "journal/event.hpp"

namespace blockyard::journal::testing {

inline std::string as_words(std::span<const Event> events) {
  std::string text;
  for (const Event& event : events) {
    if (!text.empty()) text += ' ';
    const std::string size = std::to_string(event.size);
    switch (event.kind) {
      case Kind::allocate:
        text += "a" + size;
        break;
      case Kind::allocate_zeroed:
        text += "z" + size;
        break;
      case Kind::allocate_aligned:
        text += "m" + std::to_string(event.alignment) + ":" + size;
        break;
      case Kind::free:
        text += "f" + std::to_string(event.block);
        break;
      case Kind::reallocate:
        text += "r" + std::to_string(event.old_block) + ">" + std::to_string(event.block) + ":" + size;
        break;
      default:
        text += "|";
    }
  }
  return text;
}

}  // namespace blockyard::journal::testing
