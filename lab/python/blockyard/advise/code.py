"""What to write for a piece of advice, with the library's own names. Tests compile all of it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Code:
    """Lines for a function's body. `bytes` or `count` is what the program asks for today."""

    includes: tuple[str, ...]
    lines: tuple[str, ...]

    def text(self) -> str:
        return "\n".join([*self.includes, *self.lines])


_LIFETIME = ("#include <blockyard/lifetime.hpp>",)


def cpp(advice: dict[str, Any]) -> Code:
    what, size = advice["what"], advice["bytes"]
    if what == "temp":
        return Code(
            _LIFETIME,
            (
                "void* block = blockyard::temp_allocate(bytes);",
                "blockyard::temp_deallocate(block, bytes);  // may be left out: the frame's end frees it",
                "by_frame_end(0);                           // once, where the program's frame ends",
            ),
        )
    if what == "temp_scope":
        return Code(
            _LIFETIME,
            (
                "blockyard::temp_scope scope;               // its end frees what comes after it",
                "void* block = blockyard::temp_allocate(bytes);",
            ),
        )
    if what == "temp_job":
        return Code(
            _LIFETIME,
            (
                "void* block = blockyard::temp_job_allocate(bytes);",
                "blockyard::temp_job_deallocate(block);     // on any thread",
                "by_frame_end(0);                           // once, where the program's frame ends",
            ),
        )
    if what == "pool":
        return Code(
            ("#include <blockyard/static_block_allocator.hpp>",),
            (
                f"using Blocks = blockyard::StaticBlockAllocator<{size}>;",
                "void* block = Blocks::allocate();",
                "Blocks::free(block);                       // on any thread",
            ),
        )
    if what == "rewindable":
        return Code(
            ("#include <blockyard/rewindable.hpp>",),
            (
                f"static blockyard::rewindable arena({advice['evidence']['region_bytes']});",
                "void* block = arena.allocate(bytes);",
                "arena.rewind();                            // where the whole group dies",
            ),
        )
    if what == "reserve" and advice["evidence"].get("copies"):
        return Code(
            ("#include <cstddef>", "#include <vector>"),
            (
                "std::vector<std::byte> buffer;             // or what grows like one",
                f"buffer.reserve({size});                      // bytes: {size} / sizeof(T) of a T",
            ),
        )
    if what == "reserve":
        return Code(
            ("#include <algorithm>", "#include <cstdlib>"),
            (f"void* buffer = std::malloc(std::max<std::size_t>(bytes, {size}));  // at first; realloc stays",),
        )
    if what == "keep":
        return Code(
            ("#include <vector>",),
            (
                "static thread_local std::vector<std::byte> buffer;  // stays from frame to frame",
                "buffer.resize(bytes);",
            ),
        )
    raise ValueError(f"there is no code for {what}")


def csharp(advice: dict[str, Any]) -> Code:
    what, size = advice["what"], advice["bytes"]
    memory = ("using Blockyard.Memory;",)
    if what == "temp":
        return Code(
            memory,
            (
                "Span<byte> block = UnmanagedMemory.MallocSpan<byte>(count, Lifetime.Temp);",
                "FrameMemory.EndFrame();                    // once, where the program's frame ends",
            ),
        )
    if what == "temp_scope":
        return Code(
            memory,
            (
                "using UnmanagedAllocator<byte> scratch = new UnmanagedAllocator<byte>();  // keep it in a field",
                "using (scratch.BeginScope())               // its end frees what comes after it",
                "{",
                "    Span<byte> block = scratch.AllocateSpan(count);",
                "}",
            ),
        )
    if what == "temp_job":
        return Code(
            memory,
            (
                "Span<byte> block = UnmanagedMemory.MallocSpan<byte>(count, Lifetime.TempJob);",
                "UnmanagedMemory.Free(block, Lifetime.TempJob);  // on any thread",
                "FrameMemory.EndFrame();                    // once, where the program's frame ends",
            ),
        )
    if what == "pool":
        return Code(
            memory,
            (
                "using UnmanagedAllocator<long> items = new UnmanagedAllocator<long>();  // of your struct; keep it",
                "Handle<long> item = items.AllocateHandle();",
                "items.Free(item);",
            ),
        )
    if what == "rewindable":
        return Code(
            memory,
            (
                "using UnmanagedAllocator<byte> arena = new UnmanagedAllocator<byte>();  // keep it in a field",
                "Span<byte> block = arena.AllocateSpan(count);",
                "arena.Reset();                             // where the whole group dies",
            ),
        )
    if what == "reserve":
        return Code(
            ("using System.Collections.Generic;",), (f"List<byte> buffer = new List<byte>({size});      // bytes",)
        )
    if what == "keep":
        return Code(
            memory,
            (
                "UnmanagedList<byte> buffer = new UnmanagedList<byte>(count, Lifetime.Persistent);  // in a field",
                "buffer.Clear();                            // instead of a new one",
            ),
        )
    raise ValueError(f"there is no code for {what}")
