"""`--in-order` begins an event when all before it in the journal are over, on whatever thread: every repeat then does
the same work, also where threads would race or something else takes their cores."""

from pathlib import Path

import numpy as np
import pytest
from replay_lab import MS, Journal, Run, planned, replayed, run, sooner_or_later

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
    """Events that began before the one before them was over; a start is told in whole nanoseconds."""
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
