"""What a running program spends in its allocator, by perf's samples of the processor's clock.

A sample is the allocator's when it lies in the allocator's module, in a function of the C library that the allocator
called (a copy, a system call), or in the kernel on behalf of either. A page fault on anonymous memory is first touch,
whoever takes it. A thread that runs nothing but the allocator is the allocator's own and stands apart.
"""

import re
import subprocess
from collections import Counter, defaultdict
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
    """Seconds of processor time of a program and its children in the allocator, in page faults on fresh memory, and on
    the allocator's own threads."""

    allocator_s: float = 0.0
    touch_s: float = 0.0
    own_threads_s: float = 0.0
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
    by_thread: dict[str, list[list[tuple[str, str]]]] = defaultdict(list)
    for thread, chain in _chains(data):
        by_thread[thread].append(chain)
    for chains in by_thread.values():
        if _is_own(chains, library):
            found.own_threads_s += len(chains) / HZ
            continue
        for chain in chains:
            if any(_ANONYMOUS.search(symbol) for symbol, module in chain if module == _KERNEL):
                found.touch_s += 1 / HZ
            elif _of_allocator(_user(chain), library):
                found.allocator_s += 1 / HZ
                symbol, module = chain[0]
                found.symbols[f"{Path(module).name} {symbol}"] += 1
    return found


def _is_own(chains: list[list[tuple[str, str]]], library: str) -> bool:
    """Whether the thread runs nothing but the allocator. The C library's has no threads."""
    users = [_user(chain)[0] for chain in chains if _user(chain)]
    modules = {Path(module).name for _, module in users}
    return (
        not _LIBC.search(library) and library in modules and all(one == library or _LIBC.search(one) for one in modules)
    )


def _user(chain: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [frame for frame in chain if frame[1] != _KERNEL]


def _of_allocator(user: list[tuple[str, str]], library: str) -> bool:
    if not user:
        return False
    if _is_helper(user[0]) and not _is_allocator(user[0], library):
        callers = [frame for frame in user[1:4] if not _is_helper(frame)]
        return bool(callers) and _is_allocator(callers[0], library)
    return _is_allocator(user[0], library)


def _is_allocator(frame: tuple[str, str], library: str) -> bool:
    symbol, module = frame
    name = Path(module).name
    if _LIBC.search(library):
        return bool(_LIBC.search(name)) and bool(_GLIBC.match(symbol))
    return name == library


def _is_helper(frame: tuple[str, str]) -> bool:
    return bool(_LIBC.search(Path(frame[1]).name)) and bool(_HELPERS.match(frame[0]))


def _chains(data: Path) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Of each sample its thread and its frames, (symbol, module), the innermost first."""
    lines = subprocess.Popen(
        ["perf", "script", "-i", data, "--no-inline", "-F", "tid,ip,sym,dso"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
    )
    thread, chain = "", []
    assert lines.stdout is not None
    for line in lines.stdout:
        if found := re.match(r"\s+[0-9a-f]+ (.*) \((.*?)( \(deleted\))?\)$", line):
            chain.append((found[1], found[2]))
        elif line.strip():
            thread = line.strip()
        elif chain:
            yield thread, chain
            chain = []
    if chain:
        yield thread, chain
    lines.wait()
