"""Runs bench_heap's workloads on every allocator, in turn, and prints medians, fairness and ratios to the best.

Each case is a process; every other round goes through the allocators in the reverse order, so that drift hits all
of them equally.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bench_result
import hardening
import loads

from blockyard import allocators

OURS = "blockyard"
LEFT_OUT = {"null"}


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    threads: int
    unit: str = "M blocks/s"
    one_core: bool = False
    figure: str = "millions_a_second"

    @property
    def key(self) -> str:
        return f"{self.name}-one-core" if self.one_core else self.name

    @property
    def case(self) -> str:
        """Differs between all of them."""
        return f"{self.key}-{self.threads}"

    @property
    def more_is_better(self) -> bool:
        return self.figure == "millions_a_second"


WORKLOADS = (
    Workload("pair", "Tight loop, a 64-byte malloc and free", 1, "ns", figure="ns_a_pair"),
    # A core for each of the two: left to the kernel they may share one, where all are several times as fast, or not.
    Workload("producer-consumer-apart", "Producer and consumer, a core each", 2),
    Workload("producer-consumer", "Producer and consumer, 8 threads", 8),
    *(Workload("larson", f"Larson-like, {n} threads", n) for n in (2, 8)),
    *(Workload("exchange", f"Random exchange, {n} threads", n) for n in (2, 8)),
    *(Workload("churn", f"Thread churn, {n} at a time", n, "M threads/s") for n in (2, 8)),
    Workload("producer-consumer", "Producer and consumer, 2 threads on one core", 2, one_core=True),
    Workload("larson", "Larson-like, 2 threads on one core", 2, one_core=True),
    Workload("exchange", "Random exchange, 2 threads on one core", 2, one_core=True),
)

Figures = dict[str, float]


def run_case(
    program: Path, choice: allocators.Choice, workload: str, threads: int, seconds: float, one_core: bool
) -> Figures:
    command = ["taskset", "-c", "0"] if one_core else []
    command += [str(program), str(choice.adapter), workload, str(threads), str(seconds), choice.options]
    done = subprocess.run(
        command, env={**os.environ, **choice.environment}, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"blockyard: {workload} on {choice.name} failed: {done.stderr.strip() or done.returncode}")
    return {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def measure(
    program: Path, choices: Sequence[allocators.Choice], workload: Workload, repeats: int, seconds: float
) -> dict[str, list[Figures]]:
    results: dict[str, list[Figures]] = {choice.name: [] for choice in choices}
    for repeat in range(repeats):
        for choice in choices if repeat % 2 == 0 else choices[::-1]:
            if sys.stderr.isatty():
                print(f"\r{workload.title[:50]}: {repeat + 1} of {repeats}, {choice.name:<12}", end="", file=sys.stderr)
            results[choice.name].append(
                run_case(program, choice, workload.name, workload.threads, seconds, workload.one_core)
            )
    if sys.stderr.isatty():
        print("\r" + " " * 78 + "\r", end="", file=sys.stderr)
    return results


def median(figures: Sequence[Figures], name: str) -> float:
    return statistics.median(each[name] for each in figures)


def kept(workload: Workload, results: dict[str, list[Figures]]) -> dict[str, Any]:
    """For the result file."""
    allocators = {}
    for name, figures in results.items():
        fairness = median(figures, "fairness") if "fairness" in figures[0] else None
        allocators[name] = {"values": [each[workload.figure] for each in figures], "fairness": fairness}
    return {
        "title": workload.title,
        "unit": workload.unit,
        "more_is_better": workload.more_is_better,
        "allocators": allocators,
    }


def show(workload: Workload, results: dict[str, list[Figures]]) -> None:
    medians = {name: median(figures, workload.figure) for name, figures in results.items()}
    best = (max if workload.more_is_better else min)(medians.values())
    print(f"\n{workload.title}, {workload.unit}")
    for name, value in sorted(medians.items(), key=lambda item: item[1], reverse=workload.more_is_better):
        spread = [each[workload.figure] for each in results[name]]
        line = f"  {name:<12} {value:9.3f}   {min(spread):.3f} to {max(spread):.3f}   {value / best:5.2f} of the best"
        if "fairness" in results[name][0]:
            line += f"   fairness {median(results[name], 'fairness'):.2f}"
        print(line)


def show_waits(
    program: Path, choices: Sequence[allocators.Choice], repeats: int, seconds: float
) -> dict[str, dict[str, Figures]]:
    """Microseconds by allocator, by quiet or busy."""
    found: dict[str, dict[str, Figures]] = {}
    print("\nAnother thread's mmap and munmap of 64 KiB, us: while the allocator's housekeeping is at its busiest")
    for choice in choices:
        for workload in ("mmap-quiet", "mmap-busy"):
            runs = [run_case(program, choice, workload, 2, seconds, one_core=False) for _ in range(repeats)]
            figures = {
                name: median(runs, f"{key}_ns") / 1000
                for name, key in (("p50", "p50"), ("p99.9", "p999"), ("max", "max"))
            }
            how = workload.removeprefix("mmap-")
            found.setdefault(choice.name, {})[how] = figures
            values = "   ".join(f"{name} {value:8.1f}" for name, value in figures.items())
            print(f"  {choice.name:<12} {how:<6} {values}")
    return found


def show_background(program: Path, choice: allocators.Choice, seconds: float) -> Figures:
    figures = run_case(program, choice, "background", 1, seconds, one_core=False)
    print(
        f"\nThe janitor's processor time: {figures['busy_percent']:.2f} % of a core while 1 MiB a millisecond is "
        f"wanted, or given back; {figures['idle_percent']:.3f} % while the program is idle"
    )
    return {"busy": figures["busy_percent"], "idle": figures["idle_percent"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each threaded case (default 0.3)")
    parser.add_argument(
        "--only",
        action="append",
        help="a workload (NAME or NAME-one-core), a load or program, waits, background or hardening; may be repeated",
    )
    parser.add_argument(
        "-a", "--allocator", dest="allocators", default="defaults", help="as `blockyard replay -a` takes them"
    )
    options = parser.parse_args()
    program = Path(os.environ["BLOCKYARD_BUILD"]) / "bench" / "heap" / "bench_heap"
    if not program.is_file():
        raise SystemExit(f"blockyard: bench/heap: NOT MEASURED: {program} was not built (scripts/build bench)")
    known = {workload.key for workload in WORKLOADS} | {*loads.NAMES, "waits", "background", "hardening"}
    if options.only and (unknown := set(options.only) - known):
        raise SystemExit(f"blockyard: there is no {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    choices = []
    for choice in allocators.resolve(options.allocators):
        if choice.missing:
            print(f"NOT MEASURED: {choice.name}: {choice.missing}")
        elif choice.name not in LEFT_OUT:
            choices.append(choice)

    def wanted(name: str) -> bool:
        return not options.only or name in options.only

    print(f"{len(choices)} allocators, medians of {options.repeats} processes each, {os.cpu_count()} cores")
    found: dict[str, Any] = {"processes": options.repeats}
    for workload in WORKLOADS:
        if wanted(workload.key):
            results = measure(program, choices, workload, options.repeats, options.seconds)
            show(workload, results)
            found.setdefault("workloads", {})[workload.case] = kept(workload, results)
    if measured := loads.measure(program, choices, wanted, options.repeats, options.seconds):
        found["loads"] = measured
    named = {choice.name: choice for choice in choices}
    if wanted("waits"):
        some = [named[name] for name in (OURS, "mimalloc", "jemalloc", "tcmalloc", "glibc") if name in named]
        found["waits_us"] = show_waits(program, some, min(options.repeats, 3), 2)
    if wanted("background") and OURS in named:
        found["background_percent"] = show_background(program, named[OURS], 6)
    if wanted("hardening"):
        found["hardening"] = hardening.show(program, options.repeats)
    bench_result.write("heap", found)


if __name__ == "__main__":
    main()
