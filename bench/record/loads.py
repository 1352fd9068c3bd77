"""What recording costs where a program leaves it no time: events without pause, many threads, many processes, each
beside heaptrack and in turn in one run."""

import argparse
import contextlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import bench_result

BUILD = Path(os.environ["BLOCKYARD_BUILD"])
HOT = BUILD / "bench" / "record" / "record-hot-loop"
THREADS = BUILD / "bench" / "record" / "record-many-threads"
STACKS = ("shallow", "deep", "different")
PROCESSES = 700


def ways(folder: str, *, stacks: bool = True, names: bool = False) -> dict[str, list[str]]:
    """What stands before a program: nothing, the recorder, heaptrack."""
    record = [sys.executable, "-m", "blockyard", "record", "--force", "-o", f"{folder}/x.byj"]
    found = {"alone": [], "recorded": [*record, *([] if names else ["--no-names"]), "--"]}
    if stacks:
        found["without stacks"] = [*record, "--no-stacks", "--"]
    if shutil.which("heaptrack"):
        found["heaptrack"] = ["heaptrack", "-o", f"{folder}/heaptrack"]
    return found


@contextlib.contextmanager
def busy_processors(wanted: bool) -> Iterator[None]:
    spinners = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(len(os.sched_getaffinity(0)) if wanted else 0)
    ]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def run(command: list[str]) -> str:
    """What it printed. heaptrack fails now and then where a program ends while it starts: that run is done again."""
    for _ in range(3):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout + done.stderr
    raise SystemExit(f"bench/record: {' '.join(command)} failed: {done.stderr}")


def measure_hot(pairs: int, repeats: int) -> dict[str, dict[str, float]]:
    """Nanoseconds per event by stacks and way."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="blockyard-bench-") as folder:
        for is_busy in (False, True):
            with busy_processors(is_busy):
                for stacks in STACKS:
                    taken: dict[str, list[float]] = {name: [] for name in ways(folder)}
                    for _ in range(repeats):
                        for name, before in ways(folder).items():
                            # heaptrack 1.4 ends with std::bad_alloc where stacks differ, after minutes.
                            if name == "heaptrack" and stacks == "different":
                                continue
                            said = run([*before, str(HOT), stacks, str(pairs)])
                            printed = re.search(r"^\d+\.\d{3}$", said, re.MULTILINE)
                            taken[name].append(float(printed.group()))
                    found[f"{stacks}, processors {'busy' if is_busy else 'free'}"] = {
                        name: statistics.median(times) for name, times in taken.items() if times
                    }
    return found


def measure_seconds(command: list[str], repeats: int, *, names: bool) -> dict[str, float]:
    """Of the whole command, from its start to its end."""
    taken: dict[str, list[float]] = {}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(prefix="blockyard-bench-") as folder:
            for name, before in ways(folder, stacks=False, names=names).items():
                begin = time.monotonic()
                run([*before, *command])
                taken.setdefault(name, []).append(time.monotonic() - begin)
    return {name: statistics.median(times) for name, times in taken.items()}


def show(what: str, unit: str, found: dict[str, float]) -> None:
    print(f"{what:<30}" + "".join(f"  {name} {value:.2f} {unit}" for name, value in found.items()))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--pairs", type=int, default=1_500_000)
    arguments.add_argument("--repeats", type=int, default=3)
    arguments.add_argument("--threads", type=int, nargs="+", default=[50, 200, 300, 2000])
    arguments.add_argument("--only", choices=("hot", "threads", "processes"))
    options = arguments.parse_args()
    figures = {}
    if options.only in (None, "hot"):
        figures["hot_ns"] = measure_hot(options.pairs, options.repeats)
        for stacks, found in figures["hot_ns"].items():
            show(stacks, "ns", found)
    if options.only in (None, "threads"):
        figures["threads_s"] = {}
        for threads in options.threads:
            pairs = 100_000 if threads <= 300 else 15_000
            found = measure_seconds([str(THREADS), str(threads), str(pairs)], 1, names=False)
            figures["threads_s"][f"{threads} threads of {pairs:,} pairs"] = found
            show(f"{threads} threads", "s", found)
    if options.only in (None, "processes"):
        script = f"for i in $(seq {PROCESSES}); do /bin/true; done"
        figures["processes_s"] = {f"{PROCESSES} processes": measure_seconds(["sh", "-c", script], 1, names=True)}
        show("processes", "s", figures["processes_s"][f"{PROCESSES} processes"])
    bench_result.write("record", figures)


if __name__ == "__main__":
    main()
