// What every build checks or hides beyond what a correct program needs. Each can be left out by a bit of
// BLOCKYARD_HEAP_SOFT, for bench/heap/run --only hardening to measure what it costs. That what describes blocks lies
// apart from them is the layout itself and can't be left out.
#pragma once

#include "checks/report.hpp"

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

}  // namespace blockyard::heap
