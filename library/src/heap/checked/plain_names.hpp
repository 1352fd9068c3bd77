// In checked builds the functions of heap.h are checked ones (checked/api.cpp) over the plain ones, which then have
// names of their own. Include before blockyard/heap.h.
#pragma once

#if BLOCKYARD_CHECKED
#define by_malloc by_plain_malloc
#define by_free by_plain_free
#define by_free_sized by_plain_free_sized
#define by_calloc by_plain_calloc
#define by_realloc by_plain_realloc
#define by_aligned_alloc by_plain_aligned_alloc
#define by_usable_size by_plain_usable_size
#define by_arena_free by_plain_arena_free
#define by_arena_destroy by_plain_arena_destroy
#define by_arena_alloc by_plain_arena_alloc
#define by_arena_calloc by_plain_arena_calloc
#define by_arena_aligned_alloc by_plain_arena_aligned_alloc
#define by_heap_check by_plain_check
#endif
