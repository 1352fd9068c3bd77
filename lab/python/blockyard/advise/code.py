"""What to write for a piece of advice, with the library's own names. Tests compile all of it.

`$bytes` is what the program asks for today, `$region` what the blocks of a group take together.
"""

from string import Template
from typing import Any

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


def cpp(advice: dict[str, Any]) -> str:
    """Lines for a function's body, below the headers that they need."""
    copied = advice["what"] == "reserve" and advice["evidence"].get("copies")
    return _filled(_CPP["reserve, copied" if copied else advice["what"]], advice)


def csharp(advice: dict[str, Any]) -> str:
    return _filled(_CSHARP[advice["what"]], advice)


def _filled(template: str, advice: dict[str, Any]) -> str:
    return Template(template).substitute(bytes=advice["bytes"], region=advice["evidence"]["region_bytes"])
