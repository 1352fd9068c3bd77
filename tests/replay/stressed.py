"""Replays the bundled journal on a quiet and on a stressed machine, in turn, and compares what the views say."""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from multiprocessing import Process
from pathlib import Path
from typing import Any

import numpy as np

from blockyard import native

JOURNAL = Path(__file__).parents[2] / "journals" / "godot-shooter.byj"
PERCENTILES = (50, 90, 99, 99.9)
TAIL = 99.99
MOST_CHANGE = 0.10
LEAST_MOVE = 1.5
# Half of each core, in slices short enough that thousands of them fall into a run.
BUSY_S, IDLE_S = 150e-6, 150e-6
# Where blocks lie decides which of them are the first on their page. Left to chance, an event that faults in all
# quiet runs may be spared in a stressed one: inherent then differs by what no stressor did.
_SAME_ADDRESSES = ("setarch", "-R")


@cache
def same_addresses() -> tuple[str, ...]:
    if subprocess.run([*_SAME_ADDRESSES, "true"], capture_output=True, check=False).returncode == 0:
        return _SAME_ADDRESSES
    print("blockyard: addresses can't be kept the same here (setarch -R): inherent may differ by that", file=sys.stderr)
    return ()


def stress(core: int) -> None:
    os.sched_setaffinity(0, {core})
    while True:
        end = time.perf_counter() + BUSY_S
        while time.perf_counter() < end:
            pass
        time.sleep(IDLE_S)


def stay_awake(core: int) -> None:
    """Runs only where nobody else wants to: the kernel gives it way at once."""
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while True:
        pass


@contextmanager
def stressed(wanted: bool) -> Iterator[None]:
    """In both cases cores are kept from falling asleep: a core that slept comes back cold, a virtual one above all, and
    a stressor that wakes it would be found to make allocators faster."""
    work = (stay_awake, stress) if wanted else (stay_awake,)
    processes = [Process(target=one, args=(core,), daemon=True) for one in work for core in os.sched_getaffinity(0)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


def replay(plan: Path, folder: Path, allocator: str, pace: str) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Latencies in ns (call and touch, net of the floors), causes, and the run's facts."""
    adapter = native.path(f"blockyard-adapter-{allocator}.so")
    command = [*same_addresses(), native.path("blockyard-replay"), "run", plan, "--adapter", adapter, "--pace", pace,
               "-o", folder]
    subprocess.run(command, check=True, capture_output=True)
    facts = json.loads((folder / "run.json").read_text())
    rows = np.load(folder / "samples.npy")
    ticks = np.maximum(rows["call"].astype(float) - facts["floor_call_ticks"], 0)
    ticks += np.where(rows["touch"] > 0, np.maximum(rows["touch"].astype(float) - facts["floor_touch_ticks"], 0), 0)
    return ticks / facts["ticks_per_ns"], rows["cause"], facts


def percentile(values: np.ndarray, percent: float, step: float) -> float:
    """Within the clock's step, where the rank lies among the equal values: a step is more than MOST_CHANGE of most."""
    value = np.percentile(values, percent, method="inverted_cdf")
    below, equal = (values < value - step / 2).sum(), (np.abs(values - value) <= step / 2).sum()
    return float(value + step * ((percent / 100 * len(values) - below) / equal - 0.5))


def ranks(percent: float, count: int) -> tuple[float, float]:
    """Two standard errors to either side of a percentile, in percent: how steep it is there. Where the events beyond it
    begin to be those that take a page fault, the neighbouring ranks are a cliff apart."""
    error = 100 * 2 * math.sqrt(count * percent / 100 * (1 - percent / 100)) / count
    return percent - error, percent + error


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repeats", type=int, default=60)
    options.add_argument("--allocator", default="glibc")
    options.add_argument("--pace", default="max", help="max, or the journal's own: 1")
    options.add_argument("--to", type=float, help="only so many seconds of the journal")
    asked = options.parse_args()
    runs: dict[bool, list[np.ndarray]] = {False: [], True: []}
    machine = {False: 0, True: 0}
    with tempfile.TemporaryDirectory() as name:
        plan = Path(name) / "journal.plan"
        stretch = [] if asked.to is None else ["--from", "0", "--to", str(asked.to)]
        subprocess.run([native.path("blockyard-replay"), "plan", JOURNAL, "-o", plan, *stretch], check=True,
                       capture_output=True)
        for repeat in range(asked.repeats):
            for busy in (False, True) if repeat % 2 else (True, False):
                with stressed(busy):
                    latencies, causes, facts = replay(plan, Path(name) / "run", asked.allocator, asked.pace)
                runs[busy].append(latencies)
                machine[busy] += int((causes & (8 | 32 | 128) != 0).sum())
    step = facts["clock_step_ticks"] / facts["ticks_per_ns"]
    as_run = {busy: np.concatenate(found) for busy, found in runs.items()}
    inherent = {busy: np.min(found, axis=0) for busy, found in runs.items()}
    failed = []
    print(f"{asked.allocator}, {asked.repeats} repeats of {len(runs[False][0]):,} events      quiet   stressed")
    tails = {busy: percentile(found, TAIL, step) for busy, found in as_run.items()}
    print(f"as-run p{TAIL}, ns                              {tails[False]:12,.0f} {tails[True]:12,.0f}")
    if tails[True] < LEAST_MOVE * tails[False]:
        failed.append(f"the stressor moved as-run's p{TAIL} by less than {LEAST_MOVE}")
    print(f"events with the machine's causes              {machine[False]:12,} {machine[True]:12,}")
    for percent in PERCENTILES:
        quiet, busy_now = (percentile(inherent[busy], percent, step) for busy in (False, True))
        least, most = (percentile(inherent[False], rank, step) for rank in ranks(percent, len(inherent[False])))
        print(f"inherent p{percent:<5} ns                           {quiet:12,.1f} {busy_now:12,.1f}"
              f"   its rank's own error: {least:,.1f} to {most:,.1f}")
        if abs(busy_now - quiet) > MOST_CHANGE * quiet:
            failed.append(f"inherent p{percent} moved by more than {MOST_CHANGE:.0%}")
    for reason in failed:
        print(f"blockyard: {reason}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
