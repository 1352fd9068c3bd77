"""Runs bench_containers' cases in fresh processes, interleaved, and prints medians and ratios to the peers.

Every case is one process; a round runs each case once, every other round in reverse order, so that drift hits all of
them. The first phase of a process is cold; `_warm` phases fill the same container again.

Each process's figures are kept in a file (--results) as soon as it has ended, so that measuring can be interrupted, or
done in pieces (--seconds), and goes on where it stopped; figures of another build of the benchmark replace the file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PRELOADS = {"glibc": None, "mimalloc": "libmimalloc.so.2", "jemalloc": "libjemalloc.so.2"}


@dataclass(frozen=True)
class Workload:
    title: str
    n: int
    implementations: str
    """Their names; `/*` behind those that are run on each malloc, the others on glibc's."""
    case: str = ""
    """The workload's name in bench_containers, where several sizes share one."""
    repeats: int = sys.maxsize
    """At most so many, where one takes long."""

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """Implementation, malloc, and the name of its row."""
        named = [(name.removesuffix("/*"), name.endswith("/*")) for name in self.implementations.split()]
        return [
            (name, malloc, f"{name}/{malloc}" if on_each else name)
            for name, on_each in named
            for malloc in (PRELOADS if on_each else ("glibc",))
        ]


WORKLOADS = {
    "list": Workload(
        "List<int>, 10 million",
        10_000_000,
        "List List-direct std/* std+allocator std+block_resource std+pmr-pool boost+node_allocator "
        "boost+adaptive_pool std+foonathan plf::colony",
    ),
    "hash-map": Workload(
        "HashMap<int, int>, 10 million, keys in order, found shuffled",
        10_000_000,
        "HashMap HashMap-direct absl::flat_hash_map absl::node_hash_map std/* std+allocator std+pmr-pool "
        "std+node_allocator",
    ),
    "hash-map-string": Workload(
        "HashMap<int, std::string>, 10 million", 10_000_000, "HashMap HashMap-direct std/* std+allocator"
    ),
    "ordered-map": Workload(
        "RBMap<int, int>, 1 million random keys",
        1_000_000,
        "RBMap RBMap-direct std/* std+allocator std+pmr-pool boost+node_allocator boost+adaptive_pool absl::btree_map",
    ),
    "blocks": Workload(
        "A million 32-byte blocks",
        1_000_000,
        "BlockAllocator StaticBlockAllocator PagedAllocator malloc/* pmr-pool foonathan",
    ),
    "threads-fill": Workload("Eight threads, a HashMap of 1 million each", 1_000_000, "HashMap HashMap-malloc/* std/*"),
    "threads-hand-over": Workload(
        "Allocated on one thread, freed on seven", 4_000_000, "StaticBlockAllocator malloc/*"
    ),
    "threads-exchange": Workload(
        "Two threads that free each other's blocks", 4_000_000, "StaticBlockAllocator heap malloc/*"
    ),
    "threads-moved": Workload("A HashMap moved to another thread", 1_000_000, "HashMap"),
}

KEYS = {
    "dense": "integers 0 to N-1, inserted in order",
    "random": "random 64-bit integers",
    "addresses": "addresses of blocks of 48 bytes",
    "strings": "random strings of 16 to 31 bytes",
    "paths": "strings with a common prefix, `res://scenes/...`",
}
LARGE = 1_000_000
HASH_SIZES = (8, 1_000, 10_000, LARGE)
ORDERED_SIZES = (8, 100, 10_000, LARGE)
LARGE_STRINGS = 300_000
LARGEST = 10_000_000
"""Of integers only: strings of this number take more memory than small machines have."""


def key_sizes(kind: str, keys: str) -> tuple[int, ...]:
    if kind == "ordered":
        return (*ORDERED_SIZES[:-1], LARGE_STRINGS, LARGE) if keys in ("strings", "paths") else ORDERED_SIZES
    return (*HASH_SIZES, LARGEST) if keys in ("dense", "random") else HASH_SIZES


def key_workloads() -> Iterator[tuple[str, Workload]]:
    """One distribution of keys and one size each: inserted, found, missed, followed from one to the next, erased."""
    peers = {"hash": "HashMap absl::node_hash_map absl::flat_hash_map std", "ordered": "RBMap absl::btree_map std"}
    for kind, names in peers.items():
        for keys, told in KEYS.items():
            if kind == "ordered" and keys == "addresses":
                continue
            for n in key_sizes(kind, keys):
                title = f"{names.split()[0]}, {n} keys: {told}"
                yield f"{kind}-{keys}-{n}", Workload(title, n, names, f"{kind}-{keys}", 3)


WORKLOADS |= dict(key_workloads())


@dataclass(frozen=True)
class Bar:
    workload: str
    ours: str
    phase: str
    peer: str
    peer_phase: str
    target: float


STATIC = 1.05
"""Of the static pools to a BlockAllocator of one's own."""


def bars() -> Iterator[Bar]:
    """What is promised: a ratio of medians of this run."""

    def on(workload: str, ours: str, peer: str, *phases: tuple[str, float]) -> Iterator[Bar]:
        for phase, at_most in phases:
            yield Bar(workload, ours, phase, peer, phase, at_most)

    yield from on("list", "List", "std/glibc", ("insert", 0.40), ("iterate", 0.50))
    yield from on("list", "List", "List-direct", ("insert", STATIC), ("iterate", STATIC), ("total", STATIC))
    yield from on("hash-map", "HashMap", "absl::node_hash_map", ("insert", 0.5), ("find", 0.75))
    yield from on("hash-map", "HashMap", "absl::flat_hash_map", ("insert", 1.5), ("find", 1.1), ("iterate", 0.6))
    same = [(phase, STATIC) for phase in ("insert", "find", "iterate", "total")]
    yield from on("hash-map", "HashMap", "HashMap-direct", *same)
    for keys in ("random", "addresses", "strings", "paths"):
        for n in HASH_SIZES:
            phases = (("find", 1.0 if n < LARGE else 0.75), ("miss", 1.0), ("insert", 0.7), ("erase", 0.7))
            yield from on(f"hash-{keys}-{n}", "HashMap", "absl::node_hash_map", *phases)
    for n in HASH_SIZES:
        dense = (("insert", 0.7), ("find", 0.7), ("erase", 0.7))
        yield from on(f"hash-dense-{n}", "HashMap", "absl::node_hash_map", *dense)
    yield from on(
        "hash-map-string", "HashMap", "std/glibc", ("insert", 0.6), ("iterate", 0.5), ("clear", 0.5), ("bytes", 0.75)
    )
    yield from on(
        "hash-map-string", "HashMap", "HashMap-direct", ("insert", STATIC), ("iterate", STATIC), ("total", STATIC)
    )
    yield from on("ordered-map", "RBMap", "std/glibc", ("insert", 0.30), ("find", 0.30))
    yield from on("ordered-map", "RBMap", "absl::btree_map", ("insert", 1.4), ("find", 1.4))
    for keys in ("strings", "paths"):
        for n in key_sizes("ordered", keys)[1:]:
            is_large = n >= LARGE_STRINGS
            for peer, at_most in (("absl::btree_map", 0.8 if is_large else 1.0), ("std", 0.65 if is_large else 1.0)):
                each = (("find", at_most), ("insert", at_most), ("erase", at_most))
                yield from on(f"ordered-{keys}-{n}", "RBMap", peer, *each)
    for n in ORDERED_SIZES[1:]:
        yield from on(f"ordered-random-{n}", "RBMap", "absl::btree_map", ("dependent_find", 1.0))
        for peer, at_most in (("absl::btree_map", 1.0), ("std", 0.3)):
            each = (("find", at_most), ("insert", at_most), ("erase", at_most))
            yield from on(f"ordered-dense-{n}", "RBMap", peer, *each)
    yield from on("ordered-map", "RBMap", "RBMap-direct", ("insert", STATIC), ("find", STATIC), ("total", STATIC))
    for ours in ("BlockAllocator", "StaticBlockAllocator"):
        yield from on("blocks", ours, "PagedAllocator", ("free", 1.0))
        yield from on("blocks", ours, "malloc/mimalloc", ("reallocate", 1.2))
        yield Bar("blocks", ours, "walk_again", ours, "walk", 1.3)
    yield from on("blocks", "StaticBlockAllocator", "BlockAllocator", ("allocate", STATIC), ("free", STATIC))
    yield from on("threads-fill", "HashMap", "HashMap-malloc/glibc", ("fill", 0.45))
    yield from on("threads-fill", "HashMap", "HashMap-malloc/mimalloc", ("fill", 0.7))
    yield from on("threads-hand-over", "StaticBlockAllocator", "malloc/mimalloc", ("allocate_and_free", 1.0))
    yield from on("threads-exchange", "StaticBlockAllocator", "heap", ("allocate_and_free", 1.0))
    yield Bar("threads-moved", "HashMap", "fill_where_moved", "HashMap", "fill_where_made", 1.1)


TOTAL = ("insert", "find", "iterate", "clear")
"""What a container's `total` is the sum of: of an element, once each."""

PEAK_GB = 2.45
CODE_SIZE = 0.9
BYTES = {("list", "List"): 24.5, ("hash-map", "HashMap"): 34.0, ("ordered-map", "RBMap"): 27.0}

Figures = dict[str, dict[str, list[float]]]
"""Row, phase: the value of each repeat."""


BROUGHT_IN = 1 << 30
"""Bytes touched and released before each process (see bring_in() in main.cpp): more than most cases take."""


SMALL = 100_000
"""Elements of a case that measures many rounds in the same memory: the first touch does not count."""


def with_totals(figures: dict[str, float]) -> dict[str, float]:
    """A container's figures and their sums, cold and warm."""
    sums = {
        f"total{again}": sum(figures[phase + again] for phase in TOTAL if phase + again in figures)
        for again in ("", "_warm")
        if f"insert{again}" in figures
    }
    return {**figures, **sums}


def run_case(program: Path, workload: str, implementation: str, n: int, malloc: str) -> dict[str, float]:
    if n >= SMALL:
        subprocess.run([program, "--bring-in", str(BROUGHT_IN)], check=True)
    environment = dict(os.environ)
    if PRELOADS[malloc]:
        environment["LD_PRELOAD"] = PRELOADS[malloc]
    done = subprocess.run([program, workload, implementation, str(n)], env=environment, capture_output=True, text=True)
    if done.returncode != 0 or "cannot be preloaded" in done.stderr:
        raise SystemExit(f"blockyard: {workload} on {implementation} over {malloc} failed: {done.stderr.strip()}")
    return {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}


@dataclass(frozen=True)
class Run:
    """One process: what it measures, and in which round."""

    workload: str
    implementation: str
    malloc: str
    row: str
    round: int


LIST_100M = Run("list-100m", "List", "glibc", "List", 0)


def plan(names: list[str], repeats: int, barred_only: bool) -> list[Run]:
    """All runs in the order in which they are made."""
    runs = []
    for name in names:
        barred = {row for bar in bars() if bar.workload == name for row in (bar.ours, bar.peer)}
        cases = [case for case in WORKLOADS[name].rows if not barred_only or case[2] in barred]
        for repeat in range(min(repeats, WORKLOADS[name].repeats)):
            runs += [Run(name, *case, repeat) for case in (cases if repeat % 2 == 0 else reversed(cases))]
    return runs


class Results:
    """Figures of the runs made so far, a line of JSON each behind a first line that names the build and the sizes."""

    def __init__(self, path: Path, program: Path, shrink: int) -> None:
        self.path = path
        self.figures: dict[Run, dict[str, float]] = {}
        head = {"program": hashlib.sha256(program.read_bytes()).hexdigest(), "shrink": shrink}
        lines = path.read_text().splitlines() if path.exists() else []
        try:
            rows = [json.loads(line) for line in lines]
        except json.JSONDecodeError as error:
            raise SystemExit(f"blockyard: {path} does not hold results: {error}; remove it or name another") from error
        if rows and rows[0] == head:
            self.figures = {Run(**row["run"]): row["figures"] for row in rows[1:]}
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(head) + "\n")

    def add(self, run: Run, figures: dict[str, float]) -> None:
        self.figures[run] = figures
        with self.path.open("a") as file:
            file.write(json.dumps({"run": vars(run), "figures": figures}) + "\n")

    def of(self, name: str) -> Figures:
        """A workload's figures, rows in the order of the table."""
        figures: Figures = {}
        rows = [row for _, _, row in WORKLOADS[name].rows]
        for run in sorted((run for run in self.figures if run.workload == name), key=lambda run: rows.index(run.row)):
            for phase, value in with_totals(self.figures[run]).items():
                figures.setdefault(run.row, {}).setdefault(phase, []).append(value)
        return figures


def measure(program: Path, runs: list[Run], results: Results, shrink: int, seconds: float) -> None:
    """Makes the runs that are not there yet, as many as can begin before the time is up."""
    end = time.monotonic() + seconds
    missing = [run for run in runs if run not in results.figures]
    for done, run in enumerate(missing):
        if time.monotonic() >= end:
            left = len(missing) - done
            print(f"{left} of {len(runs)} runs are left; the same command goes on with them", file=sys.stderr)
            return
        if sys.stderr.isatty():
            text = f"{run.workload}: round {run.round + 1}, {run.row} ({len(missing) - done} left)"
            print(f"\r{text:<79}", end="", file=sys.stderr, flush=True)
        if run == LIST_100M:
            figures = run_case(program, "list", run.implementation, 100_000_000 // shrink, run.malloc)
        else:
            workload = WORKLOADS[run.workload]
            n = max(workload.n // shrink, 1)
            figures = run_case(program, workload.case or run.workload, run.implementation, n, run.malloc)
        results.add(run, figures)
    if sys.stderr.isatty():
        print("\r" + " " * 79 + "\r", end="", file=sys.stderr)


def show(name: str, figures: Figures) -> None:
    workload = WORKLOADS[name]
    processes = [len(values) for row in figures.values() for values in row.values()]
    counts = str(min(processes)) if min(processes) == max(processes) else f"{min(processes)} to {max(processes)}"
    phases = list(dict.fromkeys(phase for row in figures.values() for phase in row))
    print(f"\n{workload.title}: CPU ns an operation, medians of {counts} processes each")
    print("Blockyard's memory is in huge pages beyond 2 MiB; peers' memory is as they ask for it.")
    for begin in range(0, len(phases), 6):
        some = phases[begin : begin + 6]
        widths = [max(len(phase), 7) for phase in some]
        print(f"{'':<22}" + "".join(f"  {phase:>{width}}" for phase, width in zip(some, widths, strict=True)))
        for row, values in figures.items():
            cells = (f"{statistics.median(values[p]):.2f}" if p in values else "" for p in some)
            print(f"{row:<22}" + "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True)))


@dataclass(frozen=True)
class Verdict:
    bar: Bar
    again: str
    """"" or "_warm"."""
    ratio: float

    @property
    def text(self) -> str:
        against = self.bar.peer if self.bar.peer != self.bar.ours else self.bar.peer_phase
        return f"{self.bar.ours} {self.bar.phase}{self.again} / {against}"


def verdicts(results: dict[str, Figures]) -> list[Verdict]:
    found = []
    for bar in bars():
        figures = results.get(bar.workload, {})
        for again in ("", "_warm"):
            ours = figures.get(bar.ours, {}).get(bar.phase + again)
            peer = figures.get(bar.peer, {}).get(bar.peer_phase + again)
            if ours and peer:
                divisor = statistics.median(peer)
                ratio = statistics.median(ours) / divisor if divisor else float("inf")
                found.append(Verdict(bar, again, ratio))
    return found


def bytes_used(results: dict[str, Figures]) -> Iterator[tuple[str, str, float, float]]:
    """Workload, row, bytes per element, and the limit."""
    for (workload, row), at_most in BYTES.items():
        if row in results.get(workload, {}):
            yield workload, row, statistics.median(results[workload][row]["bytes"]), at_most


def judge(results: dict[str, Figures]) -> None:
    lines = [(f"{one.bar.workload}: {one.text}", one.ratio, one.bar.target) for one in verdicts(results)]
    for workload, row, used, at_most in bytes_used(results):
        lines.append((f"{workload}: {row} bytes an element", used, at_most))
    if lines:
        print("\nRatios of medians, and what they are to be at most")
        for text, ratio, at_most in lines:
            print(f"{text:<66}{ratio:>7.2f} {at_most:>5.2f} {'' if ratio <= at_most else 'MISSED'}")


def kept(results: dict[str, Figures], peak_gb: float | None, sizes: dict[str, int]) -> dict[str, Any]:
    """For the result file: medians of everything, ratios beside their targets, sizes."""
    ratios: dict[Bar, dict[str, float]] = {}
    for one in verdicts(results):
        ratios.setdefault(one.bar, {})[one.again] = one.ratio
    told = {
        f"{WORKLOADS[workload].title.partition(', 1')[0]}, bytes per element": (at_most, used)
        for workload, _, used, at_most in bytes_used(results)
    }
    if peak_gb is not None:
        told["List<int> of 100 million, peak resident, GB"] = (PEAK_GB, peak_gb)
    told["code of a hundred container types, of PagedAllocator"] = (
        CODE_SIZE,
        sizes["StaticBlocks"] / sizes["PagedNodes"],
    )
    counts = [len(values) for figures in results.values() for row in figures.values() for values in row.values()]
    return {
        "processes": max(counts),
        "workloads": {
            name: {
                "title": WORKLOADS[name].title,
                "case": WORKLOADS[name].case,
                "entries": WORKLOADS[name].n,
                "rows": {
                    row: {phase: round(statistics.median(values), 3) for phase, values in phases.items()}
                    for row, phases in figures.items()
                },
            }
            for name, figures in results.items()
        },
        "ratios": [{**vars(bar), "cold": found.get(""), "warm": found.get("_warm")} for bar, found in ratios.items()],
        "sizes": {what: {"target": target, "value": value} for what, (target, value) in told.items()},
    }


def code_sizes(build: Path) -> dict[str, int]:
    """Bytes of text, data and unwinding of the same program on static blocks and on PagedAllocator."""
    sizes = {}
    for blocks in ("StaticBlocks", "PagedNodes"):
        program = build / "bench" / "container" / f"bench_code_size_{blocks}"
        out = subprocess.run(["size", "-A", program], capture_output=True, text=True, check=True).stdout
        sections = {
            parts[0]: int(parts[1])
            for parts in map(str.split, out.splitlines())
            if len(parts) == 3 and parts[1].isdigit()
        }
        sizes[blocks] = sum(
            sections.get(section, 0) for section in (".text", ".rodata", ".data", ".eh_frame", ".gcc_except_table")
        )
    return sizes


def show_code_size(sizes: dict[str, int]) -> None:
    ratio = sizes["StaticBlocks"] / sizes["PagedNodes"]
    print("\nCode size of a program of one hundred container types (text, data, unwinding), bytes")
    print(
        f"static blocks {sizes['StaticBlocks']}, PagedAllocator {sizes['PagedNodes']}: ratio {ratio:.3f}, at most "
        f"{CODE_SIZE:.2f}{'' if ratio <= CODE_SIZE else '  MISSED'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--only", action="append", choices=[*WORKLOADS, "code-size", "list-100m"], help="these workloads only"
    )
    parser.add_argument("--shrink", type=int, default=1, help="divide the number of elements")
    parser.add_argument("--barred", action="store_true", help="only what a promised ratio is made of")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no further run after so long")
    parser.add_argument("--results", type=Path, help="where figures are kept (results.jsonl beside the benchmark)")
    options = parser.parse_args()
    if options.repeats < 1 or options.shrink < 1:
        raise SystemExit("blockyard: --repeats and --shrink are 1 or more")
    build = Path(os.environ.get("BLOCKYARD_BUILD", ROOT / "build" / "bench"))
    program = build / "bench" / "container" / "bench_containers"
    if not program.exists():
        raise SystemExit(f"blockyard: {program} is not built; `make bench` builds and runs it")
    if shutil.which("size") is None:
        raise SystemExit("blockyard: binutils' size is needed for the code size")
    wanted = options.only or [*WORKLOADS, "code-size", "list-100m"]
    names = [name for name in WORKLOADS if name in wanted]
    results = Results(options.results or build / "bench" / "container" / "results.jsonl", program, options.shrink)
    runs = plan(names, options.repeats, options.barred) + ([LIST_100M] if "list-100m" in wanted else [])
    measure(program, runs, results, options.shrink, options.seconds)
    figures = {name: results.of(name) for name in names if results.of(name)}
    for name, rows in figures.items():
        show(name, rows)
    peak_gb = results.figures.get(LIST_100M, {}).get("peak_gb")
    if peak_gb is not None:
        print(f"\nList<int> of 100 million: {peak_gb:.3f} GB peak resident, at most {PEAK_GB}")
    sizes = code_sizes(build)
    if "code-size" in wanted:
        show_code_size(sizes)
    judge(figures)
    if set(WORKLOADS) <= set(figures) and options.shrink == 1:
        import bench_result

        bench_result.write("container", kept(figures, peak_gb, sizes))
    else:
        print("\nNo result file: not everything was measured at its full size", file=sys.stderr)


if __name__ == "__main__":
    main()
