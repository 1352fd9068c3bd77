/// The general heap behind the `persistent` lifetime: malloc's contract under names of our own.
///
/// Bound and backing: today every call forwards to the system's malloc (src/heap/system.cpp), so time, memory and
/// calls into the operating system are those of the system's malloc. Blockyard's own heap replaces the forwarder
/// behind this header and nothing else changes.
///
/// All sizes are bytes. Unless said otherwise a block is aligned to 16 bytes, belongs to the caller until it is passed
/// to by_free, may be freed on any thread, and every function may be called from any thread at any time.
#ifndef BLOCKYARD_HEAP_H
#define BLOCKYARD_HEAP_H

#include <stddef.h>

#include "blockyard/visibility.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A block of at least `size` bytes, contents unspecified. Size 0 gives a unique block that may be freed.
/// On failure NULL with errno ENOMEM. May call the operating system.
BY_API void* by_malloc(size_t size);

/// Gives a block back. NULL is a no-op. Keeps errno.
BY_API void by_free(void* block);

/// `count * size` bytes set to zero. NULL with errno ENOMEM when the product overflows or memory is exhausted.
BY_API void* by_calloc(size_t count, size_t size);

/// Resizes as realloc does: the contents up to the smaller size are kept, NULL acts as by_malloc; on failure NULL with
/// errno ENOMEM and `block` stays valid.
BY_API void* by_realloc(void* block, size_t size);

/// A block at a power of two `alignment`. NULL with errno EINVAL for any other alignment, ENOMEM when exhausted.
BY_API void* by_aligned_alloc(size_t alignment, size_t size);

/// Bytes that may be used in a live block, at least what was asked for; 0 for NULL.
BY_API size_t by_usable_size(const void* block);

#ifdef __cplusplus
}
#endif
#endif
