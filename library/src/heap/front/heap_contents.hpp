// What is in a whole heap: emptied as far as it goes, given up, counted and checked. For a heap that no thread has, or
// that nobody uses at the moment.
#pragma once

#include <cstdint>

#include "heap/front/thread_heap.hpp"

namespace blockyard::heap {

/// Puts all cached and deferred blocks back into their slabs, and gives the process every slab that is then empty. At
/// most 64 KiB of each class, 1,024 blocks at most, and 8 more, and the empty slabs. For a heap that no thread has.
void flush(ThreadHeap* heap);

/// Gives every slab back, whatever lives in them. Nobody may use or free into the heap meanwhile. O(slabs).
void retire_all(ThreadHeap* heap);

/// Bytes of live blocks in the heap's slabs; racy while its thread runs. O(slabs).
std::uint64_t live_bytes(const ThreadHeap* heap);

/// A cached block that is cached twice, or is free in its slab too, since it was freed twice; null: none. O(cached
/// blocks), 1,024 squared a class.
const void* freed_twice(const ThreadHeap* heap);
/// A cached block that the heap did not hand out before it was freed; null: none. O(cached blocks).
const void* never_handed_out(const ThreadHeap* heap);
/// A block in the list of a current slab, or of the next, that was written to after its free; null: none. O(blocks of
/// two slabs a class).
const void* written_after_free(const ThreadHeap* heap);

/// Walks one heap that nobody uses at this moment. Null, or what is broken. O(its blocks).
const char* check(const ThreadHeap* heap);
/// Likewise of a block that waits in the depot.
const char* check_handed_over(const void* block, unsigned size_class);

}  // namespace blockyard::heap
