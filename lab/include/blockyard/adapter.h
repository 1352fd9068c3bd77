/// Adapter ABI: the small shim through which the lab drives one allocator, ours included.
///
/// An adapter is a shared object that exports `by_adapter_get`. The replayer loads one adapter into a process of its
/// own (so no allocator inherits another's heap), calls `init` once before any other function, then drives it from the
/// journal's threads. The function pointers may be the allocator's own entry points: nothing is put between them and
/// the measured call. All sizes and alignments are bytes, alignments powers of two.
#ifndef BLOCKYARD_ADAPTER_H
#define BLOCKYARD_ADAPTER_H

#include <stddef.h>
#include <stdint.h>

#include "blockyard/detail/visibility.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BY_ADAPTER_ABI 1u

enum by_adapter_flags {
  /// Works in a pool of fixed size, which `init` gets as by_adapter_setup.pool_bytes.
  BY_ADAPTER_NEEDS_POOL = 1u << 0,
  /// Not thread-safe: the replayer puts a lock around every call of a threaded replay, and reports say so.
  BY_ADAPTER_NEEDS_LOCK = 1u << 1,
  /// `free_sized` must be used in place of `free`: the allocator wants size and alignment back.
  BY_ADAPTER_SIZED_FREE = 1u << 2,
  /// The allocator itself lacks calloc, realloc or aligned allocation: the adapter makes it of others. Reports say so.
  BY_ADAPTER_EMULATES_ZEROED = 1u << 3,
  BY_ADAPTER_EMULATES_REALLOCATE = 1u << 4,
  BY_ADAPTER_EMULATES_ALIGNED = 1u << 5,
};

typedef struct by_adapter_setup {
  uint32_t abi;          ///< BY_ADAPTER_ABI of the caller.
  uint32_t threads;      ///< Threads that will call, the main one included.
  uint64_t peak_bytes;   ///< Highest sum of live requested bytes in the journal stretch, preamble included.
  uint64_t peak_blocks;  ///< Highest number of live blocks.
  uint64_t pool_bytes;   ///< Pool to use when BY_ADAPTER_NEEDS_POOL; chosen by the replayer from the two above.
  int populate;          ///< Prefaulted variant: have memory for peak_bytes populated before returning, where it can.
  const char* options;   ///< "key=value,key=value" of the variant, never NULL.
  char* error;           ///< Where `init` writes one sentence when it fails.
  size_t error_bytes;    ///< Size of that buffer.
} by_adapter_setup;

typedef struct by_adapter {
  uint32_t abi;         ///< BY_ADAPTER_ABI that the adapter was built with.
  uint32_t flags;       ///< by_adapter_flags.
  const char* name;     ///< "jemalloc"; static storage.
  const char* version;  ///< "5.3.0", as the allocator itself says where it can; static storage, valid after `init`.
  /// Readies the allocator. 0, or non-zero with a sentence in setup->error. Called once, on the main thread.
  /// It may change the functions below: read them afterwards.
  int (*init)(const by_adapter_setup* setup);
  /// Called on each journal thread before its first and after its last event; may be NULL.
  void (*thread_start)(void);
  void (*thread_stop)(void);
  /// The allocation family, with the meaning of the C functions. The replayer calls one of the two frees, `free_sized`
  /// with BY_ADAPTER_SIZED_FREE and `free` without; the other may be NULL, and no other function may. `reallocate` gets
  /// the old size and alignment for allocators that need them. Its result is aligned as `allocate`'s, whatever the old
  /// block had: later calls name 16 as that block's alignment. NULL for a size above 0 means out of memory.
  void* (*allocate)(size_t size);
  void* (*allocate_zeroed)(size_t size);
  void* (*allocate_aligned)(size_t alignment, size_t size);
  void* (*reallocate)(void* block, size_t old_size, size_t old_alignment, size_t size);
  void (*free)(void* block);
  void (*free_sized)(void* block, size_t size, size_t alignment);
} by_adapter;

/// The one symbol that every adapter exports. The result lives as long as the process.
BY_API const by_adapter* by_adapter_get(void);

/// A count that an allocator keeps: its name, in static storage, and its value since the start.
typedef struct by_adapter_counter {
  const char* name;
  uint64_t value;
} by_adapter_counter;

/// An optional symbol. Fills up to `most` elements of `counters` and returns how many it filled. Called on the main
/// thread after `init`, never while an event is measured. The run's record has the counts before the clock started (the
/// preamble) and while it ran.
BY_API uint32_t by_adapter_counters(by_adapter_counter* counters, uint32_t most);

/// An optional symbol. Bytes of a live block that may be used, at least what was asked for; 0 where the allocator
/// cannot say. Called on the main thread after the clock has stopped, for every live block: what is beyond the bytes
/// asked for was lost to rounding.
BY_API size_t by_adapter_usable_size(void* block);

#ifdef __cplusplus
}
#endif
#endif
