"""Holds replays against the programs that were recorded: each on several allocators, beside what the replay of its
journal says of them. Prints one JSON object."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import bench_result
import perf
import programs
from programs import PROGRAMS, Program

from blockyard import allocators
from blockyard.allocators import LIBRARY_VARIABLE, Choice
from blockyard.analysis import sections

ALLOCATORS = ("glibc", "jemalloc", "mimalloc", "tcmalloc", "blockyard")
TOUCHES = ("first", "page", "all")
"""`page` is what replays do unless told otherwise."""
REPLAYS = 3


def library(choice: Choice) -> Path:
    """The file that a program gets as its malloc."""
    if choice.base == "glibc":
        return Path("libc.so.6")
    if choice.base == "blockyard":
        return Path(os.environ["BLOCKYARD_BUILD"]) / "library/src/heap/malloc/libblockyard-malloc.so"
    name = choice.environment[LIBRARY_VARIABLE]
    if "/" in name:
        return Path(name).resolve()
    listed = subprocess.run(["/sbin/ldconfig", "-p"], check=True, capture_output=True, text=True).stdout
    return Path(
        next(line.rpartition(" => ")[2] for line in listed.splitlines() if line.split()[:1] == [name])
    ).resolve()


def run(program: Program, file: Path, folder: Path, data: Path | None = None) -> dict[str, float]:
    """One run of the program: its processor time and how long it took; with `data` its samples go there."""
    command = programs.command(program, "" if file.name == "libc.so.6" else str(file))
    with programs.prepared(program, folder) as how:
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = perf.record(command, data, **how) if data else subprocess.run(command, check=False, **how)
        wall, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if not programs.ended_well(program, done.returncode):
        raise SystemExit(f"bench/fidelity: {program.name} ended with {done.returncode} on {file.name}")
    return {"cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, "wall_s": wall}


def ran(program: Program, choices: Sequence[Choice], folder: Path) -> tuple[dict[str, dict[str, Any]], float]:
    """By allocator what the program and its allocator spent, and how long the program takes on its own."""
    plain: dict[str, list[dict[str, float]]] = {one.name: [] for one in choices}
    samples: dict[str, list[Path]] = {one.name: [] for one in choices}
    for repeat in range(program.repeats):
        for one in choices if repeat % 2 == 0 else reversed(choices):
            data = folder / f"{one.name}-{repeat}.data"
            if not program.real_time:
                plain[one.name].append(run(program, library(one), folder / "work"))
            sampled = run(program, library(one), folder / "work", data)
            if program.real_time:
                plain[one.name].append(sampled)
            samples[one.name].append(data)
    found = {}
    for one in choices:
        spent = [perf.read(data, library(one).name) for data in samples[one.name]]
        symbols = sum((each.symbols for each in spent), start=type(spent[0].symbols)())
        found[one.name] = {
            "cpu_s": median(each["cpu_s"] for each in plain[one.name]),
            "perf_s": median(each.allocator_s for each in spent),
            "perf_touch_s": median(each.touch_s for each in spent),
            "perf_own_threads_s": median(each.own_threads_s for each in spent),
            "symbols": {name: count / perf.HZ / len(spent) for name, count in symbols.most_common(5)},
        }
    return found, median(each["wall_s"] for each in plain["glibc"])


def recorded(program: Program, folder: Path) -> tuple[Path, float, int]:
    """The journal, how long it is, and how many events it has."""
    place = folder / "recorded"
    words = ["record", "--no-stacks", "-o", place / "journal.byj", "--", *programs.command(program)]
    with programs.prepared(program, place) as how:
        done = subprocess.run([sys.executable, "-m", "blockyard", *words], check=False, **how)
    if not programs.ended_well(program, done.returncode):
        raise SystemExit(f"bench/fidelity: {program.name} could not be recorded")
    # Those that only start the program left a journal too.
    journal = max(place.glob("*.byj"), key=lambda path: path.stat().st_size)
    told = subprocess.run(
        [sys.executable, "-m", "blockyard", "info", journal, "--json"], check=True, capture_output=True, text=True
    )
    facts = json.loads(told.stdout)
    return journal, facts["duration_ns"] / 1e9, facts["events"]


def replayed(
    journal: Path, choices: Sequence[Choice], pace: float, touch: str, folder: Path
) -> dict[str, dict[str, Any]]:
    """By allocator what the replay says."""
    given = {
        "-a": ",".join([*(one.name for one in choices), "null"]),
        "--repeats": REPLAYS,
        "--pace": f"{pace:.2f}",
        "--touch": touch,
        "-o": folder,
    }
    words = [str(word) for pair in given.items() for word in pair]
    subprocess.run([sys.executable, "-m", "blockyard", "replay", journal, *words], check=True, capture_output=True)
    (section,) = sections.read(folder).sections
    found = {}
    for runs in section.allocators:
        if runs.is_null or runs.totals is None:
            continue
        total = runs.totals.all
        found[runs.name] = {
            "total_s": total.ns / 1e9,
            "low_s": (total.low_ns or 0.0) / 1e9,
            "high_s": (total.high_ns or 0.0) / 1e9,
            "touch_s": (total.touch_ns or 0.0) / 1e9,
            "own_threads_s": median(run.facts.background.cpu_ns or 0.0 for run in runs.untimed) / 1e9,
            "timed_s": median(run.number("timed_ns") for run in runs.runs) / 1e9,
        }
    return found


def measure(program: Program, choices: Sequence[Choice], folder: Path, touches: Sequence[str]) -> dict[str, Any]:
    journal, duration_s, events = recorded(program, folder)
    spent, wall_s = ran(program, choices, folder)
    # At the speed of the program, which recording slows; one that mostly rests is replayed faster.
    pace = max(1.0, duration_s / wall_s) if not program.real_time else 4.0
    replays = {touch: replayed(journal, choices, pace, touch, folder / touch) for touch in touches}
    return {
        "program": program.name,
        "events": events,
        "wall_s": wall_s,
        "recorded_s": duration_s,
        "pace": pace,
        "allocators": {
            one.name: {**spent[one.name], "replay": {touch: replays[touch].get(one.name) for touch in touches}}
            for one in choices
        },
    }


def main() -> None:
    wanted = [name for name in sys.argv[1:] if name not in TOUCHES]
    touches = [name for name in sys.argv[1:] if name in TOUCHES] or ["page"]
    known = [one.name for one in PROGRAMS]
    if unknown := set(wanted) - set(known):
        raise SystemExit(
            f"bench/fidelity: there is no program {', '.join(sorted(unknown))}; there are {', '.join(known)}"
        )
    choices = [one for one in allocators.resolve(list(ALLOCATORS)) if one.missing is None]
    result: dict[str, Any] = {}
    done = bench_result.measured("fidelity")
    with tempfile.TemporaryDirectory(prefix="blockyard-") as name:
        Path(name).chmod(0o755)
        for program in PROGRAMS:
            if program.name not in wanted if wanted else program.name in done:
                continue
            if lacking := programs.missing(program):
                print(f"bench/fidelity: NOT MEASURED: {program.name}, {', '.join(lacking)} is missing", file=sys.stderr)
                continue
            folder = Path(name) / program.name
            folder.mkdir()
            folder.chmod(0o755)
            result[program.name] = measure(program, choices, folder, touches)
            bench_result.write("fidelity", {program.name: result[program.name]})
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
