"""What a running program spends in its allocator, by perf's samples of the processor's clock.

A sample is the allocator's when it lies in the allocator's module, in a function of the C library that the allocator
called (a copy, a system call), or in the kernel on behalf of either. A page fault that another function takes on
anonymous memory is first touch.
"""

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

HZ = 4999
"""Of the clock by which samples are taken; a prime, so that it keeps no step with anything."""
_STACK_BYTES = 256
"""Enough to find the caller of a leaf function and of a system call's wrapper."""
_KERNEL = "[kernel.kallsyms]"
# The allocator within the C library: malloc/malloc.c and malloc/arena.c, by their functions' names.
_GLIBC = re.compile(
    r"_?_?(libc_)?(malloc|free|cfree|calloc|realloc|reallocarray|memalign|aligned_alloc|valloc|pvalloc|posix_memalign)$"
    r"|_(int|mid)_(malloc|free|realloc|memalign)|.*(malloc_consolidate|unlink_chunk|sysmalloc|systrim|tcache|arena_get"
    r"|munmap_chunk|mremap_chunk|alloc_perturb|heap_trim|grow_heap|shrink_heap|new_heap|ptmalloc|malloc_usable_size"
    r"|mtrim|int_free|__(glibc_)?morecore|alloc_new_heap|detach_arena|get_free_list)"
)
_LIBC = re.compile(r"(libc|ld-linux)[^/]*\.so[.\d]*$")
# What the allocator calls of the C library and nobody would call the program's own.
_HELPERS = re.compile(
    r"_?_?(GI_)?_*(mmap|mmap64|munmap|mremap|madvise|mprotect|brk|sbrk|syscall|mem(cpy|move|set|pcpy|cmp)|sched_yield"
    r"|pthread_mutex|lll_)"
)
_ANONYMOUS = re.compile(r"do_anonymous_page|do_huge_pmd_anonymous_page|vma_alloc_(zeroed|anon)|alloc_anon_folio")


@dataclass
class Spent:
    """Seconds of processor time of a program and its children: all of it, what is the allocator's, and first touch."""

    all_s: float = 0.0
    allocator_s: float = 0.0
    touch_s: float = 0.0
    symbols: Counter = field(default_factory=Counter)
    """Samples of the allocator by module and symbol."""


def record(command: list[str], data: Path, **how) -> subprocess.CompletedProcess:
    graph = ["--call-graph", f"dwarf,{_STACK_BYTES}"]
    return subprocess.run(
        ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HZ), *graph, "-o", data, "--", *command],
        check=False,
        **how,
    )


def read(data: Path, library: str) -> Spent:
    """`library` is the file name of the allocator's module, `libc.so.6` for the C library's own."""
    found = Spent()
    samples = ours = touches = 0
    for chain in _chains(data):
        samples += 1
        kind = _kind(chain, library)
        ours += kind == "allocator"
        touches += kind == "touch"
        if kind == "allocator":
            symbol, module = chain[0]
            found.symbols[f"{Path(module).name} {symbol}"] += 1
    found.all_s, found.allocator_s, found.touch_s = (count / HZ for count in (samples, ours, touches))
    return found


def _kind(chain: list[tuple[str, str]], library: str) -> str:
    kernel = [symbol for symbol, module in chain if module == _KERNEL]
    user = [(symbol, module) for symbol, module in chain if module != _KERNEL]
    if any(_is_allocator(frame, library) for frame in user[:1]):
        return "allocator"
    if user and _is_helper(user[0]):
        callers = [frame for frame in user[1:4] if not _is_helper(frame)]
        if callers and _is_allocator(callers[0], library):
            return "allocator"
    if any(_ANONYMOUS.search(symbol) for symbol in kernel):
        return "touch"
    return "program"


def _is_allocator(frame: tuple[str, str], library: str) -> bool:
    symbol, module = frame
    name = Path(module).name
    if _LIBC.search(library):
        return bool(_LIBC.search(name)) and bool(_GLIBC.match(symbol))
    return name == library


def _is_helper(frame: tuple[str, str]) -> bool:
    return bool(_LIBC.search(Path(frame[1]).name)) and bool(_HELPERS.match(frame[0]))


def _chains(data: Path) -> Iterator[list[tuple[str, str]]]:
    """Of each sample its frames, (symbol, module), the innermost first."""
    lines = subprocess.Popen(
        ["perf", "script", "-i", data, "--no-inline", "-F", "comm,ip,sym,dso"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
    )
    chain: list[tuple[str, str]] = []
    assert lines.stdout is not None
    for line in lines.stdout:
        if found := re.match(r"\s+[0-9a-f]+ (.*) \((.*?)( \(deleted\))?\)$", line):
            chain.append((found[1], found[2]))
        elif not line.strip() and chain:
            yield chain
            chain = []
    if chain:
        yield chain
    lines.wait()
