// What every build checks or hides beyond what a correct program needs. Each can be left out by a bit of
// BLOCKYARD_HEAP_SOFT, for bench/heap/run --only hardening to measure what it costs. That what describes blocks lies
// apart from them is the layout itself and can't be left out.
//
// The links of free lists, which stand in freed blocks. A link shows that its block is free, and that nobody has
// written there since.
#pragma once

#include <bit>
#include <cstdint>

#include "checks/report.hpp"
#include "heap/size_class.hpp"
#include "heap/slab_tables.hpp"

#ifndef BLOCKYARD_HEAP_SOFT
#define BLOCKYARD_HEAP_SOFT 0
#endif

namespace blockyard::heap {

/// Links of free lists are stored encoded with a key of the process.
inline constexpr bool encode_links = (BLOCKYARD_HEAP_SOFT & 1) == 0;
/// A link that leads out of its slab, because a freed block was written to, is reported before anybody follows it; and
/// a link found in a block that is about to be free: it was freed twice.
inline constexpr bool check_links = (BLOCKYARD_HEAP_SOFT & 2) == 0;
/// A free of one of the two blocks that the thread freed last of a class is reported.
inline constexpr bool check_last_freed = (BLOCKYARD_HEAP_SOFT & 4) == 0;
/// A pointer outside the heap, or at no multiple of block_alignment, is reported; without this only null is recognised.
inline constexpr bool check_range = (BLOCKYARD_HEAP_SOFT & 8) == 0;
/// A pointer into a block is reported: when it is freed where its class shows it, else when it goes back into its slab.
inline constexpr bool check_begin = (BLOCKYARD_HEAP_SOFT & 16) == 0;

[[noreturn, gnu::cold, gnu::noinline]] inline void report_freed_twice(const void* block) {
  checks::report_fault("free of a block that was freed already", block);
}
[[noreturn, gnu::cold, gnu::noinline]] inline void report_written_after_free(const void* block) {
  checks::report_fault("something was written to a block after it was freed, or it was freed twice", block);
}
[[noreturn, gnu::cold, gnu::noinline]] inline void report_inside(const void* pointer) {
  checks::report_fault("free of a pointer into the middle of a block", pointer);
}

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
