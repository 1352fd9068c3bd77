"""`--in-order` begins an event when all before it in the journal are over, on whatever thread: every repeat then does
the same work, also where threads would race or something else takes their cores."""

import contextlib
import os
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from replay_lab import MS, REPLAY, TOOLS, Journal, Run, planned, replayed, run, sooner_or_later

THREADS = 3


def taken_in_turns(blocks: int = 1500, ns: int = 0) -> Journal:
    """Each thread allocates in its turn, and stretches of frees, of all threads' blocks, fall on one after another."""
    journal = Journal()
    for number in range(blocks):
        journal.allocate(f"b{number}", 16 + number, number * ns, number % THREADS + 1)
        if number >= 50:
            journal.free(f"b{number - 50}", number * ns, number // 7 % THREADS + 1)
    return journal


def overlaps(made: Run) -> int:
    """Events that began before the one before them was over; starts are whole nanoseconds."""
    rows = made.rows
    ends = rows["start"] + np.floor(rows["call"] / made.facts["ticks_per_ns"])
    return int((rows["start"][1:] + 2 < ends[:-1]).sum())


@pytest.mark.parametrize(("pace", "options"), [("max", ()), ("1", ()), ("max", ("--stream-above", "0"))])
def test_no_event_begins_before_the_one_before_it_is_over(tmp_path: Path, pace: str, options: tuple[str, ...]) -> None:
    made = replayed(taken_in_turns(ns=1000), tmp_path, "--in-order", *options, pace=pace)
    assert len(np.unique(made.rows["thread"])) == THREADS
    assert overlaps(made) == 0
    assert made.facts["order_inversions"] == 0
    assert made.facts["in_order"] is True


def test_without_it_threads_go_their_own_ways(tmp_path: Path) -> None:
    plan = planned(taken_in_turns(), tmp_path)

    def inverted() -> bool:
        made = run(plan, tmp_path)
        assert made.facts["in_order"] is False
        return made.facts["order_inversions"] > 0

    assert sooner_or_later(inverted)


@pytest.mark.parametrize("what", ["--verify", "--untimed", "--trace"])
def test_runs_that_time_nothing_keep_the_order_too(tmp_path: Path, what: str) -> None:
    made = replayed(taken_in_turns(), tmp_path, "--in-order", what)
    assert (np.diff(made.calls("m")["size"].astype(int)) > 0).all()


def test_threads_that_have_nothing_to_do_hold_nobody_up(tmp_path: Path) -> None:
    journal = Journal()
    for thread in range(1, 6):  # alive when the stretch begins, and never heard of again
        journal.allocate(f"kept{thread}", 64, 0, thread)
    for number in range(200):
        journal.allocate(f"b{number}", 32, MS + number, number % 2 + 1)
    made = replayed(journal, tmp_path, "--in-order", plan_options=("--from", "0.0005"))
    assert made.facts["replay_threads"] == 5
    assert made.facts["order_inversions"] == 0


def cores_of_threads(plan: Path, folder: Path, *options: str) -> list[set[int]]:
    """The cores that each thread of a run may use, looked at while it waits for its last event."""
    command = [REPLAY, "run", plan, "--adapter", TOOLS / "witness.so", "--touch", "none", "-o", folder, *options]
    running = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        end = time.monotonic() + 60
        found: list[set[int]] = []
        while running.poll() is None and time.monotonic() < end:
            with contextlib.suppress(OSError):  # it has just ended
                looked = [os.sched_getaffinity(int(task.name)) for task in Path(f"/proc/{running.pid}/task").iterdir()]
                found = max(found, looked, key=lambda sets: sum(len(cores) == 1 for cores in sets))
            time.sleep(0.02)
        assert running.wait(timeout=60) == 0, running.stderr.read() if running.stderr else ""
        return found
    finally:
        running.kill()
        running.communicate(timeout=60)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core: threads have nowhere else to go")
def test_each_thread_stays_on_one_core_and_the_busiest_two_on_different_ones(tmp_path: Path) -> None:
    journal = Journal()
    for number, thread in enumerate([1, 2, 2, 3, 3, 3]):
        journal.allocate(f"b{number}", 64, number, thread)
    for thread in range(1, THREADS + 1):
        journal.allocate(f"last{thread}", 64, 700 * MS, thread)
    plan = planned(journal, tmp_path)
    bound = [cores for cores in cores_of_threads(plan, tmp_path / "bound", "--in-order") if len(cores) == 1]
    assert len(bound) == THREADS
    assert len(set.union(*bound)) == min(THREADS, len(os.sched_getaffinity(0)))
    assert all(len(cores) > 1 for cores in cores_of_threads(plan, tmp_path / "free"))
