"""What to write for a piece of advice, with the library's own names. Tests compile all of it.

`$bytes` is what the program asks for today, `$region` what the blocks of a group take together.
"""

import re
from string import Template

from blockyard.advise.document import Change

_CPP = {
    "temp": """\
#include <blockyard/lifetime.hpp>
void* block = blockyard::temp_allocate(bytes);
blockyard::temp_deallocate(block, bytes);  // may be left out: the frame's end frees it
by_frame_end(0);                           // once, where the program's frame ends""",
    "temp_scope": """\
#include <blockyard/lifetime.hpp>
blockyard::temp_scope scope;               // its end frees what comes after it
void* block = blockyard::temp_allocate(bytes);""",
    "temp_job": """\
#include <blockyard/lifetime.hpp>
void* block = blockyard::temp_job_allocate(bytes);
blockyard::temp_job_deallocate(block);     // on any thread
by_frame_end(0);                           // once, where the program's frame ends""",
    "pool": """\
#include <blockyard/static_block_allocator.hpp>
using Blocks = blockyard::StaticBlockAllocator<$bytes>;
void* block = Blocks::allocate();
Blocks::free(block);                       // on any thread""",
    "rewindable": """\
#include <blockyard/rewindable.hpp>
static blockyard::rewindable arena($region);
void* block = arena.allocate(bytes);
arena.rewind();                            // where the whole group dies""",
    "reserve": """\
#include <algorithm>
#include <cstdlib>
void* buffer = std::malloc(std::max<std::size_t>(bytes, $bytes));  // at first; realloc stays""",
    "reserve, copied": """\
#include <cstddef>
#include <vector>
std::vector<std::byte> buffer;             // or what grows like one
buffer.reserve($bytes);                      // bytes: $bytes / sizeof(T) of a T""",
    "keep": """\
#include <vector>
static thread_local std::vector<std::byte> buffer;  // stays from frame to frame
buffer.resize(bytes);""",
}
_CONTAINERS = {
    "map": "std::map<Key, Value, std::less<Key>, blockyard::allocator<std::pair<const Key, Value>>>",
    "multimap": "std::multimap<Key, Value, std::less<Key>, blockyard::allocator<std::pair<const Key, Value>>>",
    "set": "std::set<Key, std::less<Key>, blockyard::allocator<Key>>",
    "multiset": "std::multiset<Key, std::less<Key>, blockyard::allocator<Key>>",
    "list": "std::list<Value, blockyard::allocator<Value>>",
    "forward_list": "std::forward_list<Value, blockyard::allocator<Value>>",
    "unordered_map": (
        "std::unordered_map<Key, Value, std::hash<Key>, std::equal_to<Key>,\n"
        "                   blockyard::allocator<std::pair<const Key, Value>>>"
    ),
    "unordered_set": "std::unordered_set<Key, std::hash<Key>, std::equal_to<Key>, blockyard::allocator<Key>>",
}
"""The standard's containers that ask for one node at a time."""
_NODES = Template("""\
#include <blockyard/allocator.hpp>
#include <$header>
$container nodes;  // on any thread""")
_INSIDE = {"_Rb_tree": "map", "_Hashtable": "unordered_map", "__tree": "map", "__hash_table": "unordered_map"}
"""What their implementations ask through, where the container itself was inlined without debug information."""
_C = {
    "temp": """\
#include <blockyard/lifetime.h>
void* block = by_lifetime_alloc(bytes, 16, BY_TEMP);
by_lifetime_free(block, BY_TEMP);          /* may be left out: the frame's end frees it */
by_frame_end(0);                           /* once, where the program's frame ends */""",
    "temp_scope": """\
#include <blockyard/lifetime.h>
by_temp_mark mark = by_temp_mark_now();
void* block = by_lifetime_alloc(bytes, 16, BY_TEMP);
by_temp_rewind(mark);                      /* frees what came after the mark */""",
    "temp_job": """\
#include <blockyard/lifetime.h>
void* block = by_lifetime_alloc(bytes, 16, BY_TEMP_JOB);
by_lifetime_free(block, BY_TEMP_JOB);      /* on any thread */
by_frame_end(0);                           /* once, where the program's frame ends */""",
    "pool": """\
#include <blockyard/block.h>
static by_block_pool* pool;                /* one thread at a time uses it */
if (!pool) pool = by_block_pool_create($bytes, 16);
void* block = by_block_pool_alloc(pool);
by_block_pool_free(pool, block);""",
    "rewindable": """\
#include <blockyard/lifetime.h>
static by_rewindable* arena;
if (!arena) arena = by_rewindable_create($region, NULL);
void* block = by_rewindable_alloc(arena, bytes, 16);
by_rewindable_rewind(arena);               /* where the whole group dies */""",
    "reserve": """\
#include <stdlib.h>
void* buffer = malloc(bytes > $bytes ? bytes : $bytes);  /* at first; realloc stays */""",
    "keep": """\
#include <stdlib.h>
static __thread void* buffer;              /* stays from frame to frame */
static __thread size_t room;
if (room < bytes) buffer = realloc(buffer, room = bytes);""",
}
_THREADS = """\
/* blocks.h; one pool for all threads is C++'s */
void* new_block(void);
void delete_block(void* block);
/* blocks.cpp, built as C++20 */
#include <blockyard/static_block_allocator.hpp>
using Blocks = blockyard::StaticBlockAllocator<$bytes>;
extern "C" void* new_block() { return Blocks::allocate(); }
extern "C" void delete_block(void* block) { Blocks::free(block); }"""
_CSHARP = {
    "temp": """\
using Blockyard.Memory;
Span<byte> block = UnmanagedMemory.MallocSpan<byte>(count, Lifetime.Temp);
FrameMemory.EndFrame();                    // once, where the program's frame ends""",
    "temp_scope": """\
using Blockyard.Memory;
using UnmanagedAllocator<byte> scratch = new UnmanagedAllocator<byte>();  // keep it in a field
using (scratch.BeginScope())               // its end frees what comes after it
{
    Span<byte> block = scratch.AllocateSpan(count);
}""",
    "temp_job": """\
using Blockyard.Memory;
Span<byte> block = UnmanagedMemory.MallocSpan<byte>(count, Lifetime.TempJob);
UnmanagedMemory.Free(block, Lifetime.TempJob);  // on any thread
FrameMemory.EndFrame();                    // once, where the program's frame ends""",
    "pool": """\
using Blockyard.Memory;
using UnmanagedAllocator<long> items = new UnmanagedAllocator<long>();  // of your struct; keep it
Handle<long> item = items.AllocateHandle();
items.Free(item);""",
    "rewindable": """\
using Blockyard.Memory;
using UnmanagedAllocator<byte> arena = new UnmanagedAllocator<byte>();  // keep it in a field
Span<byte> block = arena.AllocateSpan(count);
arena.Reset();                             // where the whole group dies""",
    "reserve": """\
using System.Collections.Generic;
List<byte> buffer = new List<byte>($bytes);      // bytes""",
    "keep": """\
using Blockyard.Memory;
UnmanagedList<byte> buffer = new UnmanagedList<byte>(count, Lifetime.Persistent);  // in a field
buffer.Clear();                            // instead of a new one""",
}


def cpp(advice: Change) -> str:
    """Lines for a function's body, below the headers that they need. C++20."""
    if advice.what == "pool" and (name := container(advice.asker)):
        header = name.removeprefix("multi")
        return _NODES.substitute(header=header, container=_CONTAINERS[name])
    copied = advice.what == "reserve" and advice.evidence.copies
    return _filled(_CPP["reserve, copied" if copied else advice.what], advice)


def native(advice: Change, cpp_is_seen: bool = True) -> str:
    """For the language of the function to change."""
    return c(advice) if is_c(advice, cpp_is_seen) else cpp(advice)


def is_c(advice: Change, cpp_is_seen: bool = True) -> bool:
    """By its file. Of a function without one: C where the whole program shows no sign of C++; else by names, which in C
    have no parameters. main() has none in C++ either."""
    file = advice.where.file
    if file:
        return file.endswith(".c")
    if not cpp_is_seen:
        return True
    names = {step.function for context in advice.contexts for step in context} | {advice.where.function}
    return bool(names - {"main"}) and all(re.fullmatch(r"\w+", name) for name in names)


def c(advice: Change) -> str:
    """C, which C++ before C++20 takes as well."""
    seen = advice.evidence
    if advice.what == "pool" and (seen.threads > 1 or seen.remote_frees):
        return _filled(_THREADS, advice)
    return _filled(_C[advice.what], advice)


def csharp(advice: Change) -> str:
    return _filled(_CSHARP[advice.what], advice)


def container(asker: str) -> str:
    """The standard's container that asks for nodes through this function; empty for any other."""
    name = re.search(r"\bstd::(?:__\w+::)?(\w+)<", asker)
    found = _INSIDE.get(name[1], name[1]) if name else ""
    return found if found in _CONTAINERS else ""


def _filled(template: str, advice: Change) -> str:
    return Template(template).substitute(bytes=advice.bytes, region=advice.evidence.region_bytes)
