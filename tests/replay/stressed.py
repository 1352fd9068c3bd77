"""Replays journals on a quiet and on a stressed machine, in turn, and compares what the views say."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from multiprocessing import Process
from pathlib import Path
from typing import Any

import numpy as np

from blockyard import native
from blockyard.analysis import causes
from blockyard.campaign import settings
from blockyard.errors import UserError

ROOT = Path(__file__).parents[2]
BUNDLED = ROOT / "journals" / "godot-shooter.byj"
STANDARD = ROOT / "bench" / "campaigns" / "standard.toml"
STRETCH_S = 2.0
PERCENTILES = (50, 90, 99, 99.9)
TAIL = 99.99
MOST_CHANGE = 0.10
LEAST_MOVE = 1.5
# Cores that others may take of a machine that counts as quiet.
MOST_OTHERS = 0.15
# Half of each core, in slices short enough that many of them fall into a run.
BUSY_S, IDLE_S = 150e-6, 150e-6
# Half of the time disturbs half of the events: so many stressed repeats leave an event alone as often as a quiet one.
STRESSED = 2


def stress(core: int) -> None:
    os.sched_setaffinity(0, {core})
    while True:
        end = time.perf_counter() + BUSY_S
        while time.perf_counter() < end:
            pass
        time.sleep(IDLE_S)


@contextmanager
def stressed(wanted: bool) -> Iterator[None]:
    processes = [Process(target=stress, args=(core,), daemon=True) for core in os.sched_getaffinity(0) if wanted]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


@dataclass(frozen=True)
class Stretch:
    """Of one journal; seconds."""

    name: str
    path: Path
    begin: float | None = None
    end: float | None = None


def stretches(length: float | None) -> list[Stretch]:
    """The bundled journal, and how the standard campaign's stretches begin, which were chosen before anything was
    measured on them."""
    found = [Stretch("bundled", BUNDLED, None if length is None else 0.0, length)]
    try:
        standard = settings.read_campaign(STANDARD).journals
    except UserError as reason:
        print(f"blockyard: NOT RUN on the games of the standard campaign: {reason}", file=sys.stderr)
        return found
    return found + [
        Stretch(one.name, one.path, one.from_s, (one.from_s or 0.0) + (length or STRETCH_S)) for one in standard
    ]


class Others:
    """What processor time others take while this program and its children work, in cores."""

    def __init__(self) -> None:
        self.taken, self.seconds = 0.0, 0.0

    @contextmanager
    def watched(self) -> Iterator[None]:
        begun, busy, own = time.monotonic(), busy_seconds(), own_seconds()
        yield
        self.seconds += time.monotonic() - begun
        self.taken += busy_seconds() - busy - (own_seconds() - own)

    def cores(self) -> float:
        return max(self.taken, 0.0) / max(self.seconds, 1e-9)


def busy_seconds() -> float:
    """Of the cores that may be used here: all but idle and waiting for a disk; what the host took counts too."""
    wanted = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    rows = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    ticks = sum(sum(int(part) for part in (*row[1:4], *row[6:9])) for row in rows if row[0] in wanted)
    return ticks / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@dataclass
class Side:
    """What was measured on the quiet machine, or on the stressed one: a list has an entry a run."""

    latencies: list[np.ndarray] = field(default_factory=list)
    """In ns, of call and touch; with the timer's floor until it is taken off."""
    floors: list[tuple[float, float]] = field(default_factory=list)
    faulting: list[np.ndarray] = field(default_factory=list)
    touched: np.ndarray | None = None
    interrupted: int = 0
    step: float = 1.0

    def replay(self, command: list[Any], folder: Path) -> None:
        done = subprocess.run([*command, "-o", folder], check=False, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        facts = json.loads((folder / "run.json").read_text())
        rows = np.load(folder / "samples.npy")
        ticks = rows["call"].astype(np.float64) + rows["touch"]
        self.latencies.append((ticks / facts["ticks_per_ns"]).astype(np.float32))
        self.floors.append(tuple(facts[f"floor_{part}_ticks"] / facts["ticks_per_ns"] for part in ("call", "touch")))
        self.touched = rows["touch"] > 0
        self.faulting.append((rows["cause"] & (causes.FAULT_CALL | causes.FAULT_TOUCH)) != 0)
        self.interrupted += int((rows["cause"] & causes.MACHINE != 0).sum())
        self.step = facts["clock_step_ticks"] / facts["ticks_per_ns"]

    def take_off(self, floor: np.ndarray) -> None:
        self.latencies = [np.maximum(one - floor[0] - floor[1] * self.touched, 0) for one in self.latencies]

    def as_run(self, percent: float) -> float:
        return percentile(np.concatenate(self.latencies), percent, self.step)

    def inherent(self, percent: float, every: int = 1) -> float:
        """Of all runs, or of every second one, ..."""
        return percentile(np.min(self.latencies[::every], axis=0), percent, self.step)

    def faults(self) -> str:
        return (
            f"{np.sum(self.faulting, axis=1).mean():,.0f} a run, {np.all(self.faulting, axis=0).sum():,} in every "
            f"run, {np.any(self.faulting, axis=0).sum():,} in any"
        )


def percentile(values: np.ndarray, percent: float, step: float) -> float:
    """Within the clock's step, where the rank lies among the equal values: a step is more than MOST_CHANGE of most."""
    value = np.percentile(values, percent, method="inverted_cdf")
    below, equal = (values < value - step / 2).sum(), (np.abs(values - value) <= step / 2).sum()
    return float(value + step * ((percent / 100 * len(values) - below) / equal - 0.5))


def check(stretch: Stretch, asked: argparse.Namespace) -> list[str]:
    """Replays and prints; what does not hold, each a phrase."""
    sides = {False: Side(), True: Side()}
    others = Others()
    with tempfile.TemporaryDirectory() as name:
        # Before the first run: what the replayer takes of the heap to make it would lay glibc's blocks elsewhere once.
        (Path(name) / "run").mkdir()
        plan = Path(name) / "journal.plan"
        ends = [
            option
            for option, value in (("--from", stretch.begin), ("--to", stretch.end))
            if value is not None
            for option in (option, str(value))
        ]
        subprocess.run(
            [native.path("blockyard-replay"), "plan", stretch.path, "-o", plan, *ends], check=True, capture_output=True
        )
        command = [
            native.path("blockyard-replay"),
            "run",
            plan,
            "--adapter",
            native.path(f"blockyard-adapter-{asked.allocator}.so"),
            "--pace",
            asked.pace,
            *([] if asked.racing else ["--in-order"]),
            *(["--keep-awake"] if asked.keep_awake else []),
        ]
        for repeat in range(asked.repeats):
            turns = (False, *[True] * asked.stressed)
            for busy in turns if repeat % 2 else reversed(turns):
                with stressed(busy), nullcontext() if busy else others.watched():
                    sides[busy].replay(command, Path(name) / "run")
    quiet, busy_side = sides[False], sides[True]
    # One for all, as in a report (docs/reference/method.md).
    floor = np.min(quiet.floors + busy_side.floors, axis=0)
    for side in sides.values():
        side.take_off(floor)
    failed = []
    quiet_enough = others.cores() <= MOST_OTHERS
    print(
        f"{stretch.name}, {asked.allocator}, {len(quiet.latencies)} quiet and {len(busy_side.latencies)} stressed "
        f"repeats of {len(quiet.latencies[0]):,} events"
    )
    if not quiet_enough:
        print(f"  the quiet repeats were NOT QUIET, others took {others.cores():.2f} cores: less is held")
    tails = quiet.as_run(TAIL), busy_side.as_run(TAIL)
    print(f"  as-run p{TAIL:<9} {tails[0]:12,.0f} ns quiet {tails[1]:12,.0f} ns stressed   {tails[1] / tails[0]:.2f}")
    if tails[1] < LEAST_MOVE * tails[0] and quiet_enough:
        failed.append(f"{stretch.name}: the stressor moved as-run's p{TAIL} by less than {LEAST_MOVE}")
    for percent in PERCENTILES:
        one, other = quiet.inherent(percent), busy_side.inherent(percent)
        fewer = busy_side.inherent(percent, asked.stressed)
        print(
            f"  inherent p{percent:<7} {one:12,.1f} ns quiet {other:12,.1f} ns stressed   {other / one:.3f}"
            f"   ({fewer / one:.3f} in as many repeats)"
        )
        # Where the quiet repeats were disturbed too, by an unknown amount, as many stressed ones are
        # too few to be held against them and all of them too many: what is the same lies between.
        least, most = (other, other) if quiet_enough else sorted((other, fewer))
        if most < (1 - MOST_CHANGE) * one or least > (1 + MOST_CHANGE) * one:
            failed.append(f"{stretch.name}: inherent p{percent} moved by more than {MOST_CHANGE:.0%}")
    print(f"  interrupted events   {quiet.interrupted:,} quiet, {busy_side.interrupted:,} stressed")
    print(f"  events with a page fault, quiet: {quiet.faults()}\n{'':20}stressed: {busy_side.faults()}", flush=True)
    return failed


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repeats", type=int, default=20)
    options.add_argument("--allocator", default="glibc")
    options.add_argument("--pace", default="max", help="max, or the journal's own: 1")
    options.add_argument("--journal", help="only this one: bundled, godot, ...")
    options.add_argument("--length", type=float, help="seconds of each journal; the bundled one else goes to its end")
    options.add_argument(
        "--racing", action="store_true", help="do not hold threads to the journal's order, nor to one core each"
    )
    options.add_argument("--keep-awake", action="store_true", help="replay with that option, quiet and stressed")
    options.add_argument(
        "--stressed",
        type=int,
        default=STRESSED,
        metavar="N",
        help="stressed repeats for each quiet one; a paced replay is disturbed less",
    )
    asked = options.parse_args()
    chosen = [one for one in stretches(asked.length) if asked.journal in (None, one.name)]
    failed = [reason for one in chosen for reason in check(one, asked)]
    for reason in failed:
        print(f"blockyard: {reason}", file=sys.stderr)
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
