// BLOCKYARD_HEAP_GUARD=1: a heap that looks for misuse, at a cost that a program in use can bear. In checked builds it
// is always on, and thorough, for some microseconds a call.
//
// Every small block ends with a canary, which says how many bytes were asked for and whether the block is free. It is
// checked when the block is freed. A freed small block waits in its thread's quarantine, and is checked again when it
// leaves. One block in some thousands lies on pages of its own (checks/sampler.hpp). Blocks above 8 KiB have a canary
// behind their bytes. Arenas are not guarded.
//
// A checked build looks at all bytes of blocks and arenas too, keeps the stacks of who allocated and freed, and gives
// blocks above 8 KiB a guard page and no access once they are freed; and one small block in 512.
//
// How calls come here: a thread's heap stands in heap_behind_guard and not in thread_heap, which stays the empty one,
// and the class map has no class. So the fast paths of malloc_api.cpp find nothing, as before a thread's first
// allocation, and none of them asks whether the guard is on.
//
// Bound: O(1) as without it; a check looks at 9 words of a block at most. 8 bytes for each small block; for each thread
// that frees, a page, and at most 72 blocks of 192 KiB together in quarantine.
#pragma once

#include <cstddef>

namespace blockyard::heap {

struct ThreadHeap;

}  // namespace blockyard::heap

namespace blockyard::heap::guard {

#if BLOCKYARD_CHECKED
inline constexpr bool thorough = true;
#else
inline constexpr bool thorough = false;
#endif

/// Readies it, once, while the heap is, behind link_key. False: there is no address space, and nothing is guarded.
bool start();
/// Once the C library is ready: takes over what reports touches of pages that nobody may touch.
void start_reports();

/// Reports a block in the calling thread's quarantine that was written to: at the program's end.
void check_quarantine();

/// What malloc and its kin call where their fast paths do not serve (api/slow_calls.hpp): null, with errno set, when
/// memory is exhausted.
void* allocate_small(std::size_t size);
/// Any size and alignment; of `arena` in checked builds only.
void* allocate(std::size_t size, std::size_t alignment, bool* zeroed, ThreadHeap* arena = nullptr);
/// Any pointer but null.
void deallocate(void* block);
std::size_t usable(const void* block);
void* reallocate(void* block, std::size_t size);

/// Of checked builds: reports a live block that has not so many bytes, or what is none; the arena's blocks are freed
/// with it; what is broken of all live blocks, or null, O(blocks).
void check_size(const void* block, std::size_t size);
void forget_blocks_of(ThreadHeap* arena);
const char* check_blocks();

}  // namespace blockyard::heap::guard
