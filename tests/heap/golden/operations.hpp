// The operations whose instructions are counted, by name. Each is one call on a warm heap.
#pragma once

#include <array>

namespace golden {

inline constexpr std::array names{
    "malloc-freed",       // 64 bytes, from the blocks at hand
    "malloc-fresh",       // 64 bytes, never handed out before: the bump pointer
    "free-local",         // 64 bytes, by the thread that allocated, kept at hand
    "free-to-slab",       // 200 bytes, as many at hand as there may be
    "calloc",             // 64 bytes; memset itself is the C library's and not counted
    "realloc-in-place",   // 60 to 64 bytes
    "aligned-alloc",      // 64 bytes at 64
    "usable-size",        // of a block of 64 bytes
    "free-remote-kept",   // another thread's block, kept at hand
    "free-remote-first",  // another thread's block, its slab's first: announced to the owner
    "free-remote-next",   // another thread's block, when its slab has remote frees already
};

/// Makes every call in this order, each between two SIGUSR1 to itself. Never returns.
[[noreturn]] void run_operations();

}  // namespace golden
