"""Runs bench_containers' cases in fresh processes, interleaved, and prints medians and ratios to the peers.

Every case is one process; a round runs each case once, every other round in reverse order, so that drift hits all
alike. The first phase of a process is cold; `_warm` phases fill the same container again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRELOADS = {"glibc": None, "mimalloc": "libmimalloc.so.2", "jemalloc": "libjemalloc.so.2"}


@dataclass(frozen=True)
class Workload:
    title: str
    n: int
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    """Implementation, and the mallocs it is run on."""
    note: str = ""


ALL_MALLOCS = ("glibc", "mimalloc", "jemalloc")
OWN = ("glibc",)
HUGE = ("Blockyard's pages are huge ones beyond 8 MiB, and slot arrays beyond 2 MiB; peers' memory is as they ask for "
        "it.")

WORKLOADS = {
    "list": Workload(
        "List<int>, 10 million", 10_000_000,
        (("List", OWN), ("List-direct", OWN), ("List-malloc", OWN), ("List-paged", OWN), ("std", ALL_MALLOCS),
         ("std+allocator", OWN), ("std+block_resource", OWN), ("std+pmr-pool", OWN), ("boost+node_allocator", OWN),
         ("boost+adaptive_pool", OWN), ("std+foonathan", OWN), ("plf::colony", OWN)),
        HUGE,
    ),
    "hash-map": Workload(
        "HashMap<int, int>, 10 million, keys in order, found shuffled", 10_000_000,
        (("HashMap", OWN), ("HashMap-direct", OWN), ("HashMap-malloc", OWN), ("HashMap-paged", OWN),
         ("absl::flat_hash_map", OWN), ("absl::node_hash_map", OWN), ("std", OWN), ("std+allocator", OWN)),
        HUGE,
    ),
    "hash-map-shuffled": Workload(
        "HashMap<int, int>, 10 million, keys shuffled, found shuffled", 10_000_000,
        (("HashMap", OWN), ("HashMap-direct", OWN), ("absl::flat_hash_map", OWN), ("absl::node_hash_map", OWN),
         ("std", OWN)),
        HUGE,
    ),
    "hash-map-string": Workload(
        "HashMap<int, std::string>, 10 million", 10_000_000,
        (("HashMap", OWN), ("HashMap-direct", OWN), ("HashMap-malloc", OWN), ("HashMap-paged", OWN),
         ("std", ALL_MALLOCS), ("std+allocator", OWN)),
        HUGE,
    ),
    "ordered-map": Workload(
        "RBMap<int, int>, 1 million random keys", 1_000_000,
        (("RBMap", OWN), ("RBMap-direct", OWN), ("RBMap-malloc", OWN), ("std", ALL_MALLOCS), ("std+allocator", OWN),
         ("std+pmr-pool", OWN), ("boost+node_allocator", OWN), ("boost+adaptive_pool", OWN), ("absl::btree_map", OWN)),
        HUGE,
    ),
    "blocks": Workload(
        "A million 32-byte blocks", 1_000_000,
        (("BlockAllocator", OWN), ("StaticBlockAllocator", OWN), ("PagedAllocator", OWN), ("malloc", ALL_MALLOCS),
         ("pmr-pool", OWN), ("foonathan", OWN)),
        HUGE,
    ),
    "threads-fill": Workload(
        "Eight threads, a HashMap of 1 million each", 1_000_000,
        (("HashMap", OWN), ("HashMap-malloc", ALL_MALLOCS), ("std", ALL_MALLOCS)), HUGE,
    ),
    "threads-hand-over": Workload(
        "Allocated on one thread, freed on seven", 4_000_000,
        (("StaticBlockAllocator", OWN), ("malloc", ALL_MALLOCS)), HUGE,
    ),
    "threads-moved": Workload("A HashMap moved to another thread", 1_000_000, (("HashMap", OWN),), HUGE),
}


@dataclass(frozen=True)
class Bar:
    workload: str
    ours: str
    phase: str
    peer: str
    peer_phase: str
    at_most: float


def bars() -> Iterator[Bar]:
    """What is promised: a ratio of medians of this run."""
    def on(workload: str, ours: str, peer: str, *phases: tuple[str, float]) -> Iterator[Bar]:
        for phase, at_most in phases:
            yield Bar(workload, ours, phase, peer, phase, at_most)

    yield from on("list", "List", "std/glibc", ("insert", 0.40), ("iterate", 0.50))
    for phase in ("insert", "iterate"):
        yield Bar("list", "List", phase, "List-direct", phase, 1.05)
    for keys in ("hash-map", "hash-map-shuffled"):
        yield from on(keys, "HashMap", "absl::node_hash_map", ("insert", 0.5), ("find", 0.75))
        yield from on(keys, "HashMap", "absl::flat_hash_map", ("insert", 1.5), ("find", 1.1), ("iterate", 0.6))
        yield from on(keys, "HashMap", "HashMap-direct", ("insert", 1.05))
    yield from on("hash-map-string", "HashMap", "std/glibc", ("insert", 0.6), ("iterate", 0.5), ("clear", 0.5),
                  ("bytes", 0.7))
    yield from on("ordered-map", "RBMap", "std/glibc", ("insert", 0.30), ("find", 0.30))
    yield from on("ordered-map", "RBMap", "absl::btree_map", ("insert", 1.4), ("find", 1.4))
    for ours in ("BlockAllocator", "StaticBlockAllocator"):
        yield from on("blocks", ours, "PagedAllocator", ("free", 1.0))
        yield from on("blocks", ours, "malloc/mimalloc", ("reallocate", 1.2))
        yield Bar("blocks", ours, "walk_again", ours, "walk", 1.3)
    yield from on("threads-fill", "HashMap", "HashMap-malloc/glibc", ("fill", 0.45))
    yield from on("threads-fill", "HashMap", "HashMap-malloc/mimalloc", ("fill", 0.7))
    yield from on("threads-hand-over", "StaticBlockAllocator", "malloc/mimalloc", ("allocate_and_free", 1.0))
    yield Bar("threads-moved", "HashMap", "fill_where_moved", "HashMap", "fill_where_made", 1.1)


BYTES = {("list", "List"): 24.5, ("hash-map", "HashMap"): 34.0, ("ordered-map", "RBMap"): 27.0}

Figures = dict[str, dict[str, list[float]]]
"""Row, phase: the value of each repeat."""


def row_name(implementation: str, malloc: str, mallocs: tuple[str, ...]) -> str:
    return implementation if len(mallocs) == 1 else f"{implementation}/{malloc}"


def run_case(program: Path, workload: str, implementation: str, n: int, malloc: str) -> dict[str, float]:
    environment = dict(os.environ)
    if PRELOADS[malloc]:
        environment["LD_PRELOAD"] = PRELOADS[malloc]
    done = subprocess.run([program, workload, implementation, str(n)], env=environment, capture_output=True, text=True)
    if done.returncode != 0 or "cannot be preloaded" in done.stderr:
        raise SystemExit(f"blockyard: {workload} on {implementation} over {malloc} failed: {done.stderr.strip()}")
    return {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def measure(program: Path, name: str, repeats: int, shrink: int) -> Figures:
    workload = WORKLOADS[name]
    cases = [(i, m, row_name(i, m, mallocs)) for i, mallocs in workload.rows for m in mallocs]
    figures: Figures = {}
    for repeat in range(repeats):
        for implementation, malloc, row in cases if repeat % 2 == 0 else reversed(cases):
            if sys.stderr.isatty():
                print(f"\r{name}: round {repeat + 1} of {repeats}, {row:<32}", end="", file=sys.stderr, flush=True)
            for phase, value in run_case(program, name, implementation, workload.n // shrink, malloc).items():
                figures.setdefault(row, {}).setdefault(phase, []).append(value)
    if sys.stderr.isatty():
        print("\r" + " " * 78 + "\r", end="", file=sys.stderr)
    return {row: figures[row] for _, _, row in cases}


def show(name: str, figures: Figures, repeats: int) -> None:
    workload = WORKLOADS[name]
    phases = list(dict.fromkeys(phase for row in figures.values() for phase in row))
    print(f"\n{workload.title}: CPU ns an operation, medians of {repeats} processes each")
    print(workload.note)
    for begin in range(0, len(phases), 6):
        some = phases[begin:begin + 6]
        widths = [max(len(phase), 7) for phase in some]
        print(f"{'':<22}" + "".join(f"  {phase:>{width}}" for phase, width in zip(some, widths, strict=True)))
        for row, values in figures.items():
            cells = (f"{statistics.median(values[p]):.2f}" if p in values else "" for p in some)
            print(f"{row:<22}" + "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True)))


def judge(results: dict[str, Figures]) -> None:
    lines = []
    for bar in bars():
        figures = results.get(bar.workload)
        if figures is None:
            continue
        ours = statistics.median(figures[bar.ours][bar.phase])
        peer = statistics.median(figures[bar.peer][bar.peer_phase])
        ratio = ours / peer if peer else float("inf")
        against = bar.peer if bar.peer != bar.ours else bar.peer_phase
        lines.append((f"{bar.workload}: {bar.ours} {bar.phase} / {against}", ratio, bar.at_most))
    for (workload, row), at_most in BYTES.items():
        if workload in results:
            used = statistics.median(results[workload][row]["bytes"])
            lines.append((f"{workload}: {row} bytes an element", used, at_most))
    if lines:
        print("\nRatios of medians, and what they are to be at most")
        for text, ratio, at_most in lines:
            print(f"{text:<66}{ratio:>7.2f} {at_most:>5.2f} {'' if ratio <= at_most else 'MISSED'}")


def show_code_size(build: Path) -> None:
    sizes = {}
    for blocks in ("StaticBlocks", "PagedNodes"):
        program = build / "bench" / "container" / f"bench_code_size_{blocks}"
        out = subprocess.run(["size", "-A", program], capture_output=True, text=True, check=True).stdout
        sections = {parts[0]: int(parts[1]) for parts in map(str.split, out.splitlines())
                    if len(parts) == 3 and parts[1].isdigit()}
        sizes[blocks] = sum(sections.get(section, 0)
                            for section in (".text", ".rodata", ".data", ".eh_frame", ".gcc_except_table"))
    ratio = sizes["StaticBlocks"] / sizes["PagedNodes"]
    print("\nCode size of a program of one hundred container types (text, data, unwinding), bytes")
    print(f"static blocks {sizes['StaticBlocks']}, PagedAllocator {sizes['PagedNodes']}: ratio {ratio:.2f}, at most "
          f"0.90{'' if ratio <= 0.9 else '  MISSED'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", action="append", choices=[*WORKLOADS, "code-size", "list-100m"],
                        help="these workloads only")
    parser.add_argument("--shrink", type=int, default=1, help="divide the number of elements")
    options = parser.parse_args()
    build = Path(os.environ.get("BLOCKYARD_BUILD", ROOT / "build" / "bench"))
    program = build / "bench" / "container" / "bench_containers"
    if not program.exists():
        raise SystemExit(f"blockyard: {program} is not built; `make bench` builds and runs it")
    if shutil.which("size") is None:
        raise SystemExit("blockyard: binutils' size is needed for the code size")
    wanted = options.only or [*WORKLOADS, "code-size", "list-100m"]
    results: dict[str, Figures] = {}
    for name in WORKLOADS:
        if name in wanted:
            results[name] = measure(program, name, options.repeats, options.shrink)
            show(name, results[name], options.repeats)
    if "list-100m" in wanted:
        gigabytes = run_case(program, "list", "List", 100_000_000 // options.shrink, "glibc")["peak_gb"]
        print(f"\nList<int> of 100 million: {gigabytes:.3f} GB peak resident, at most 2.45")
    if "code-size" in wanted:
        show_code_size(build)
    judge(results)


if __name__ == "__main__":
    main()
