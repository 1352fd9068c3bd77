// The links of free lists, which stand in freed blocks.
#pragma once

#include <cstdint>

#include "heap/hardening.hpp"

namespace blockyard::heap {

/// Encodes the links of free lists: a block that is written after its free no longer leads the allocator where an
/// attacker wants. Chosen at start; the same for all slabs.
extern std::uintptr_t link_key;

inline void* encoded(void* link) {
  return encode_links ? reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(link) ^ link_key) : link;
}

}  // namespace blockyard::heap
