"""A journal larger than memory, from repeating it to its report; and what streaming does to a paced replay.

Prints one JSON object. *Own memory* is the anonymous memory (RssAnon) of all processes of a step together, at its
highest of samples 50 ms apart: what the system can't drop. Pages of mapped files, which it can, are told apart. Of a
run, it is what the replayer itself had resident when its clock started; the rest is the allocator's.
"""

import contextlib
import json
import mmap
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import bench_result
import numpy as np

from blockyard import native

EVENTS = 200_000_000
LONG = "godot"
BUSY = {"godot": (0.68, 8.0), "warzone2100": (1.0, 60.0)}
"""By how much the journal's times are squeezed, and the second up to which it is replayed then. Squeezed so, the first
has 200,000 events in 100 ms where it loads; the second has twice as many by itself."""
RING_MIB = 16
ALLOCATORS = ("null", "glibc", "blockyard")
WAYS = ("memory", "streamed")
REPEATS = 3
LATENESS = (("p50", 50), ("p99", 99), ("p99.9", 99.9))
BUSIEST_NS = 100_000_000
ROOM_BYTES = 40_000_000_000


class Memory:
    """Highest sums of RssAnon and RssFile over a process and its descendants."""

    def __init__(self, root: int) -> None:
        self.anonymous = self.mapped = 0
        self._root, self._ended = root, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.05):
            sums: dict[str, int] = defaultdict(int)
            for process in _family(self._root):
                try:
                    status = Path(f"/proc/{process}/status").read_text()
                except OSError:
                    continue
                for line in status.splitlines():
                    if line.startswith(("RssAnon:", "RssFile:")):
                        name, kib, _ = line.split()
                        sums[name] += int(kib) * 1024
            self.anonymous = max(self.anonymous, sums["RssAnon:"])
            self.mapped = max(self.mapped, sums["RssFile:"])


def _family(root: int) -> list[int]:
    found = [root]
    for process in found:
        for children in Path(f"/proc/{process}/task").glob("*/children"):
            try:
                found += map(int, children.read_text().split())
            except OSError:
                continue
    return found


def step(command: list[Any]) -> tuple[str, dict[str, Any]]:
    """Runs it; what it printed, and how long and how much it took."""
    begun = time.perf_counter()
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
    memory = Memory(process.pid)
    output = process.communicate()[0]
    memory.stop()
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} failed with {process.returncode}")
    return output, {
        "seconds": round(time.perf_counter() - begun, 1),
        "own_mb": round(memory.anonymous / 1e6),
        "mapped_mb": round(memory.mapped / 1e6),
    }


def blockyard(*arguments: object) -> tuple[str, dict[str, Any]]:
    return step([sys.executable, "-m", "blockyard", *arguments])


def length(journals: Path, folder: Path) -> dict[str, Any]:
    """Every step of a campaign on a journal of 200 million events."""
    result: dict[str, Any] = {}
    once, long, results = folder / "once.byj", folder / "long.byj", folder / "results"
    told = json.loads(blockyard("convert", journals / f"{LONG}.journal.zst", "-o", once, "--json")[0])
    times = -(-EVENTS // told["events"])
    output, result["repeat"] = blockyard("repeat", once, times, "-o", long, "--json")
    result |= {"journal": LONG, "times": times, "events": json.loads(output)["events"]}
    output, result["check"] = blockyard("check", long, "--json")
    result["violations"] = json.loads(output)["violations"]
    result["replay"] = blockyard("replay", long, "-a", "glibc,null", "--repeats", 1, "--pace", "max", "-o", results)[1]
    run = json.loads((results / "runs/long/glibc/max-page/1/run.json").read_text())
    result["run"] = {
        "wall_s": run["wall_ns"] / 1e9,
        "own_mb": round(run["lab_resident_bytes"] / 1e6),
        "stream": run["stream"],
    }
    options = ("--samples-parquet", "--allocations-csv", "--html")
    result["report"] = blockyard("report", results, "-o", folder / "report", *options)[1]
    written = [path for path in (folder / "report").rglob("*") if path.is_file()]
    result["report_files"] = {path.name: path.stat().st_size for path in sorted(written)}
    return result


def squeezed(journal: Path, factor: float, folder: Path) -> Path:
    text = folder / "squeezed.txt"
    with text.open("wb") as file:
        source = subprocess.Popen(["zstd", "-dcq", journal], stdout=subprocess.PIPE)
        scaled = f'{{ $NF = sprintf("%.0f", $NF * {factor}); print }}'
        subprocess.run(["awk", scaled], stdin=source.stdout, stdout=file, check=True)
        assert source.wait() == 0
    return text


def pace(name: str, journals: Path, folder: Path) -> dict[str, Any]:
    """A journal at 1x from memory and streamed through 16 MiB, in turn, on allocators between which the causes of
    lateness differ: null's is the machine's and the replayer's own."""
    plan, (factor, to_s) = folder / "busy.plan", BUSY[name]
    tool = native.path("blockyard-replay")
    journal = squeezed(journals / f"{name}.journal.zst", factor, folder)
    told = json.loads(
        subprocess.run(
            [tool, "plan", journal, "-o", plan, "--to", str(to_s)], check=True, stdout=subprocess.PIPE
        ).stdout
    )
    due = due_times(journal, told)
    busiest = int((np.searchsorted(due, due + BUSIEST_NS) - np.arange(len(due))).max())
    found: dict[str, Any] = {
        "busiest_100_ms_events": busiest,
        "events": len(due),
        "ring_mib": RING_MIB,
        "repeats": REPEATS,
        "before_others": os.geteuid() == 0,
    }
    runs: dict[str, dict[str, list[Run]]] = {name: {way: [] for way in WAYS} for name in ALLOCATORS}
    for repeat in range(REPEATS):
        for allocator, ways in runs.items():
            for way in WAYS if repeat % 2 == 0 else WAYS[::-1]:
                warm(told["peak_bytes"])
                output = folder / way
                adapter = native.path(f"blockyard-adapter-{allocator}.so")
                subprocess.run(
                    [
                        tool,
                        "run",
                        plan,
                        "--adapter",
                        adapter,
                        "--pace",
                        "1",
                        "--stream-above",
                        str(RING_MIB if way == "streamed" else 4096),
                        "-o",
                        output,
                    ],
                    check=True,
                    start_new_session=True,
                    preexec_fn=before_others,
                )
                ways[way].append(read_run(output, due))
    return found | {
        allocator: {way: figures(ways[way]) for way in WAYS} | {"streamed_less_memory": difference(ways)}
        for allocator, ways in runs.items()
    }


def due_times(journal: Path, plan: dict[str, Any]) -> np.ndarray:
    """When each event of the plan begins by the journal's clock, in ns, by its number in the journal."""
    with journal.open("rb") as file:
        times = np.array([int(line.rsplit(b" ", 1)[1]) for line in file if not line.startswith(b"#")], np.int64)
    return times[: plan["first_event"] + plan["events"]] - round(plan["origin_s"] * 1e9)


def before_others() -> None:
    """Puts other programs of the machine behind this process, where the system allows it: with nobody else busy on
    purpose, what still starts now and then on any machine would take a core for milliseconds."""
    with contextlib.suppress(OSError):
        os.nice(-20)
        Path("/proc/self/autogroup").write_text("-20")  # of a session, where sessions share the machine


def warm(byte_count: int) -> None:
    """Writes so much memory and gives it back. A virtual machine's host may have taken pages that nobody used, and
    takes a multiple of a page fault's time to bring one back: that is neither the journal's nor the way it is read."""
    np.empty(byte_count, np.uint8)[:: mmap.PAGESIZE] = 1


class Run(NamedTuple):
    """Of one run."""

    late: np.ndarray
    """ns behind the journal's clock, an event each."""
    behind_calls: np.ndarray
    """The part of it that the thread's own calls and touches before it explain, in a replay that takes no time."""
    singles: dict[str, float]


def read_run(output: Path, due: np.ndarray) -> Run:
    run = json.loads((output / "run.json").read_text())
    rows = np.load(output / "samples.npy", mmap_mode="r")
    due = due[rows["event"]]
    late = rows["start"].astype(np.int64) - due
    net = (rows["call"].astype(float) - run["floor_call_ticks"]) / run["ticks_per_ns"]
    took = (rows["call"].astype(float) + rows["touch"]) / run["ticks_per_ns"]
    behind = np.zeros(len(rows))
    for thread in np.unique(rows["thread"]):
        own = np.flatnonzero(rows["thread"] == thread)
        before = np.concatenate(([0.0], np.cumsum(took[own])[:-1]))  # an event begins when it is due, or the last ends
        behind[own] = np.maximum.accumulate(due[own] - before) + before - due[own]
    stream = run["stream"] or {"outruns": 0, "waited_ns": 0, "reader_cpu_ns": 0}
    singles = {
        "outruns": stream["outruns"],
        "waited_ns": stream["waited_ns"],
        "reader_share_of_a_core": stream["reader_cpu_ns"] / run["wall_ns"],
    }
    for name, chosen in (("malloc", rows["kind"] != 3), ("free", rows["kind"] == 3)):
        for label, percent in (("p50", 50), ("p99.9", 99.9)):
            singles[f"{name}_{label}_ns"] = percentile(net[chosen], percent)
    return Run(late, behind, singles)


def figures(runs: list[Run]) -> dict[str, Any]:
    """Medians over the repeats, and of the lateness all of them; `inherent` takes of each event the least of them."""
    least = np.minimum.reduce([run.late for run in runs])
    return {
        **{
            f"lateness_{label}_us": sorted(round(percentile(run.late, percent) / 1e3, 2) for run in runs)
            for label, percent in LATENESS
        },
        **{f"lateness_inherent_{label}_us": round(percentile(least, percent) / 1e3, 2) for label, percent in LATENESS},
        **{
            f"lateness_behind_calls_{label}_us": sorted(
                round(percentile(run.behind_calls, percent) / 1e3, 2) for run in runs
            )
            for label, percent in LATENESS
        },
        **{key: statistics.median(run.singles[key] for run in runs) for key in runs[0].singles},
    }


def difference(ways: dict[str, list[Run]]) -> dict[str, Any]:
    """Of runs that followed one another, and of what is inherent to both ways."""
    least = {way: np.minimum.reduce([run.late for run in runs]) for way, runs in ways.items()}
    pairs = list(zip(ways["streamed"], ways["memory"], strict=True))
    return {
        f"lateness_{label}_us": {
            "pairs": sorted(
                round((percentile(streamed.late, percent) - percentile(memory.late, percent)) / 1e3, 2)
                for streamed, memory in pairs
            ),
            "inherent": round((percentile(least["streamed"], percent) - percentile(least["memory"], percent)) / 1e3, 2),
        }
        for label, percent in LATENESS
    }


def percentile(values: np.ndarray, percent: float) -> float:
    return float(np.percentile(values, percent, method="inverted_cdf"))


def main() -> None:
    journals, part, names = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3:] or list(BUSY)
    result: dict[str, Any] = {"cores": os.cpu_count()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if part in ("all", "pace"):
            result["pace"] = {name: pace(name, journals, folder) for name in names}
        free = shutil.disk_usage(folder).free
        if part in ("all", "length") and free < ROOM_BYTES:
            print(
                f"bench/stream: the long journal is NOT MEASURED: {folder} has {free / 1e9:.0f} GB free, and "
                f"{ROOM_BYTES / 1e9:.0f} GB are needed (set TMPDIR)",
                file=sys.stderr,
            )
        elif part in ("all", "length"):
            result["length"] = length(journals, folder)
    print(json.dumps(result, indent=2))
    bench_result.write("stream", result)


if __name__ == "__main__":
    main()
