// The operations whose instructions are counted, by name. Each is one call on a warm heap.
#pragma once

#include <array>

namespace golden {

inline constexpr std::array names{
    "malloc-freed",       // 64 bytes, a cached block
    "malloc-fresh",       // 64 bytes, never handed out before: the bump pointer
    "free-local",         // 64 bytes, by the thread that allocated, cached
    "free-to-slab",       // 200 bytes, the cache is full
    "malloc-from-slab",   // 200 bytes, none is cached or left at the bump pointer
    "calloc",             // 64 bytes; memset itself is the C library's and not counted
    "realloc-in-place",   // 60 to 64 bytes
    "aligned-alloc",      // 64 bytes at 64
    "usable-size",        // of a block of 64 bytes
    "free-remote-kept",   // another thread's block, cached
    "free-remote-first",  // another thread's block, its slab's first: announced to the owner
    "free-remote-next",   // another thread's block, when its slab has remote frees already
    "malloc-in-turn",     // 32 bytes, amid 500 allocated and 500 freed in turn: all of them are cached
};

/// Makes every call in this order, each between two SIGUSR1 to itself. Never returns.
[[noreturn]] void run_operations();

}  // namespace golden
