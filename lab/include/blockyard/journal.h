/// Journals from inside a program: for an engine whose own allocator stands in front of malloc, and for choosing which
/// stretch of a run is recorded. Link libblockyard-record, or declare nothing and run under `blockyard record`.
///
/// by_journal_alloc() and its kin write a journal of their own, opened by by_journal_open(), apart from the one of
/// malloc that `blockyard record` writes: an engine's blocks lie inside blocks of malloc, and one journal can't say
/// both. Without a recorder around the program only the engine's events are recorded and malloc is left alone.
///
/// Thread-safety: every function may be called from any thread. An event is stamped inside the call, so call
/// by_journal_alloc() after the block was obtained and by_journal_free() before it is given back: then no address is
/// live twice in the journal whatever the threads do. Each event carries the call stack of its call. Cost: about 100 ns
/// an event, 20 without stacks (`blockyard record --no-stacks`), no lock, no system call, except for a thread's first
/// event and when the collector, a process of its own, falls behind by a whole ring: then the call waits. Memory: 64
/// KiB a thread, 4 MiB for the first 16 that need it.
///
/// On Windows libblockyard-journal, static or a DLL, writes within the program: one lock for all threads, the system's
/// walk of at most 62 callers, and 32 MiB of ring; what is younger than a second is lost where the process is ended
/// from outside or calls abort. Tags are not recorded. An engine that replaces operator new and links the static
/// library must not call under its own lock.
///
/// All functions keep errno and do nothing while no journal is open.
#ifndef BLOCKYARD_JOURNAL_H
#define BLOCKYARD_JOURNAL_H

#include <stddef.h>

#include "blockyard/detail/visibility.h"
#include "blockyard/frame.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Begins a journal at `path` (UTF-8, at most 4096 bytes; an existing file is replaced). One at a time. Returns 0, or
/// -1 with errno, and a line on standard error that says why: EBUSY when one is open, ENAMETOOLONG, ECHILD when
/// blockyard-collect, which lies beside this library, could not be started. Starts a process; call it once at start-up.
/// That the path can't be written shows at close.
BY_API int by_journal_open(const char* path);

/// Ends the journal and waits until it is complete on disk. Returns 0, or -1 with errno: EBADF when none is open, EIO
/// when it could not be written in full (the reason stands on standard error). A program that ends without it loses
/// nothing.
BY_API int by_journal_close(void);

/// The engine's allocator gave `block`: `size` bytes asked for, `alignment` in bytes, a power of two, or 0 when the
/// engine asked for none in particular. NULL is ignored. More than 2^48 - 1 bytes are written down as so many.
BY_API void by_journal_alloc(const void* block, size_t size, size_t alignment);

/// `block` is about to go back to the engine's allocator. NULL is ignored.
BY_API void by_journal_free(const void* block);

/// `old_block` became `block` of `size` bytes; call it after the fact. For a block that moved this is exact only where
/// no other thread can get the old address before the call; where one could, call by_journal_free() before and
/// by_journal_alloc() after. With NULL for `old_block` it is an allocation, with NULL for `block` a free.
BY_API void by_journal_realloc(const void* old_block, const void* block, size_t size);

/// Opens and closes the window in which events are written; both journals of the process obey. Each window after the
/// first is a journal of its own (NAME-2.byj, ...) that begins with the blocks then alive.
BY_API void by_journal_start(void);
BY_API void by_journal_stop(void);

/// Names the calling thread in the journal, at most 4096 bytes; pthread_setname_np() does it too, under `blockyard
/// record`.
BY_API void by_journal_name_thread(const char* name);

#ifdef __cplusplus
}
#endif
#endif
