// The links of free lists, which stand in freed blocks. A link shows that its block is free, and that nobody has
// written there since.
#pragma once

#include <bit>
#include <cstdint>

#include "heap/front/hardening.hpp"
#include "heap/size_class.hpp"
#include "heap/slab_tables.hpp"

namespace blockyard::heap {

/// Encodes the links of free lists: a block that is written after its free no longer leads the allocator where an
/// attacker wants. Chosen at start; the keys of all slabs come from it.
extern std::uintptr_t link_key;

/// Links that the slab's owner wrote are encoded with Slab::key, those that other threads wrote with link_key, since
/// they do not read the slab's record. The last link of the owner's leads to the slab's limit, that of other threads'
/// is null.
inline std::uintptr_t decoded(const void* block, std::uintptr_t key) {
  return *static_cast<const std::uintptr_t*>(block) ^ (encode_links ? key : 0);
}
inline void write_link(void* block, const void* next, std::uintptr_t key) {
  *static_cast<std::uintptr_t*>(block) = reinterpret_cast<std::uintptr_t>(next) ^ (encode_links ? key : 0);
}

/// Whether a block of the slab may begin at `next`, or the slab has its limit there. One comparison: the rotation makes
/// what is no multiple of block_alignment greater than every slab.
inline bool is_link(const Slab* slab, std::uintptr_t next) {
  return std::rotr(reinterpret_cast<std::uintptr_t>(slab->limit) - next, std::countr_zero(block_alignment)) <=
         most_slices * slice_bytes / block_alignment;
}

/// Whether the owner freed the block and it is still free. No other block looks so, but by chance one in 2^52: a block
/// loses its link when it is handed out, and a slab that starts again has another key.
inline bool has_link(const Slab* slab, const void* block) {
  return encode_links && is_link(slab, decoded(block, slab->key));
}

}  // namespace blockyard::heap
