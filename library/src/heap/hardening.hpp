// What every build checks or hides beyond what a correct program needs. Each can be left out by a bit of
// BLOCKYARD_HEAP_SOFT, for bench/heap/run --only hardening to measure what it costs; docs/design/heap.md has the table.
// That what describes blocks lies apart from them is the layout itself and can't be left out.
#pragma once

#include "heap/fault.hpp"

#ifndef BLOCKYARD_HEAP_SOFT
#define BLOCKYARD_HEAP_SOFT 0
#endif

namespace blockyard::heap {

/// Links of free lists are stored encoded with a key of the process.
inline constexpr bool encode_links = (BLOCKYARD_HEAP_SOFT & 1) == 0;
/// A link that leads out of its slab, because a freed block was written to, is reported before anybody follows it.
inline constexpr bool check_links = (BLOCKYARD_HEAP_SOFT & 2) == 0;
/// A block freed twice in a row is reported.
inline constexpr bool check_last_freed = (BLOCKYARD_HEAP_SOFT & 4) == 0;
/// A pointer outside the heap is reported; without this only null is recognised.
inline constexpr bool check_range = (BLOCKYARD_HEAP_SOFT & 8) == 0;

[[noreturn, gnu::cold, gnu::noinline]] inline void report_freed_twice(const void* block) {
  report_fault("free of a block that was freed already", block);
}
[[noreturn, gnu::cold, gnu::noinline]] inline void report_written_after_free(const void* block) {
  report_fault("something was written to a block after it was freed", block);
}

}  // namespace blockyard::heap
