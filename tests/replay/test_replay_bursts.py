"""Untimed runs: the same events in bursts, with a clock around each burst and none around a call."""

from pathlib import Path

import numpy as np
import pytest
from replay_lab import (
    MS,
    SANITIZED,
    Journal,
    Route,
    Run,
    planned,
    planted,
    replayed,
    run,
    sooner_or_later,
    spaced,
    write_routes,
)

US = 1_000


def bursts(made: Run) -> np.ndarray:
    return np.load(made.folder / "bursts.npy")


def chain(count: int, ns: int = 10, thread: int = 1, journal: Journal | None = None, from_ns: int = 0) -> Journal:
    """Allocations and frees in turn, an event each `ns`."""
    journal = journal or Journal()
    for number in range(count // 2):
        name = f"t{thread}b{from_ns}.{number}"
        journal.allocate(name, 64, from_ns + 2 * number * ns, thread)
        journal.free(name, from_ns + (2 * number + 1) * ns, thread)
    return journal


@pytest.mark.parametrize("pace", ["1", "10", "max"])
def test_every_event_is_in_exactly_one_burst_of_its_thread(tmp_path: Path, pace: str) -> None:
    journal = chain(1000)
    chain(3000, thread=2, journal=journal, from_ns=20 * US)
    made = replayed(journal, tmp_path, "--untimed", pace=pace, touch="page")
    rows = bursts(made)
    assert [int(rows["events"][rows["thread"] == thread].sum()) for thread in (0, 1)] == [1000, 3000]
    last = [int(rows["event"][rows["thread"] == thread].max()) for thread in (0, 1)]
    assert last == [999, 3999]
    assert made.facts["burst_ns"] == pytest.approx(int(rows["ns"].sum()), abs=len(rows))
    assert not (made.folder / "samples.npy").exists()


def test_a_burst_has_the_events_of_a_hundred_microseconds(tmp_path: Path) -> None:
    rows = bursts(replayed(chain(100, 10 * US), tmp_path, "--untimed", pace="1"))
    assert rows["events"].tolist() == [11] * 9 + [1]
    assert (rows["start"] >= np.arange(10) * 110 * US).all(), "each waits for its first event's time"


def test_at_no_pace_a_burst_is_no_longer_than_512_events(tmp_path: Path) -> None:
    rows = bursts(replayed(chain(2000, MS), tmp_path, "--untimed"))
    assert rows["events"].tolist() == [512, 512, 512, 464]


def test_ends_of_frames_and_phases_end_bursts(tmp_path: Path) -> None:
    journal = chain(10)
    journal.frame(100)
    chain(20, journal=journal, from_ns=200)
    journal.lines += ["# name loading", "# phase 1 1 500"]
    journal.events += 1
    chain(30, journal=journal, from_ns=600)
    rows = bursts(replayed(journal, tmp_path, "--untimed"))
    assert rows["events"].tolist() == [10, 20, 30]
    assert rows["frame"].tolist() == [0, 1, 1]


def test_a_burst_takes_as_long_as_its_calls(tmp_path: Path) -> None:
    made = replayed(chain(20), tmp_path, "--untimed", witness="slow_us=1000")
    assert int(bursts(made)["ns"].sum()) >= 10 * MS, "the witness takes so long for each malloc"


def test_what_the_allocator_sleeps_is_its_own_time(tmp_path: Path) -> None:
    made = planted(spaced(40), tmp_path, {20: "sleep"}, "--untimed")
    assert int(bursts(made)["ns"].max()) > 250 * US, "the plant sleeps 300 us"


def test_waiting_for_another_thread_is_in_no_burst(tmp_path: Path) -> None:
    journal = Journal().allocate("a", 64, 0, thread=1)
    journal.allocate("b", 64, 1, thread=1).free("b", 2, thread=2).free("a", 3, thread=2)

    def is_apart() -> bool:
        rows = bursts(replayed(journal, tmp_path, "--untimed", witness="slow_us=50000"))
        mine = rows[rows["thread"] == 1]
        return int(rows["ns"].sum()) >= 100 * MS and int(mine["ns"].sum()) < 20 * MS

    assert sooner_or_later(is_apart), "the two mallocs take 100 ms, for which the frees wait"


@pytest.mark.skipif(SANITIZED, reason="NOT RUN: a sanitizer's own memory would be measured")
def test_a_streamed_journal_leaves_the_same_bursts(tmp_path: Path) -> None:
    journal = Journal()
    for part in range(100):
        for thread in (1, 2):
            chain(500, 2 * US, thread, journal, part * MS)
    plan = planned(journal, tmp_path)
    (tmp_path / "whole").mkdir()
    whole = bursts(run(plan, tmp_path / "whole", "--untimed", pace="1"))
    made = run(plan, tmp_path, "--untimed", "--stream-above", "0", pace="1")
    assert made.done.returncode == 0, made.done.stderr
    assert made.facts["stream"] is not None
    rows = bursts(made)
    for thread in (0, 1):
        mine, theirs = (each[each["thread"] == thread] for each in (rows, whole))
        assert int(mine["events"].sum()) == int(theirs["events"].sum())
        assert (np.diff(mine["event"].astype(np.int64)) > 0).all()


def test_the_end_of_temp_memory_belongs_to_the_frame_that_ends(tmp_path: Path) -> None:
    journal = Journal()
    for frame in range(4):
        for number in range(5):
            journal.allocate(f"{frame}.{number}", 64, frame * MS + number)
        for number in range(5):
            journal.free(f"{frame}.{number}", frame * MS + 10 + number)
        journal.frame(frame * MS + 20)
    mallocs = tuple(event for event in range(44) if event % 11 < 5)
    routes = write_routes(tmp_path / "routes", journal.events, Route("temp", mallocs))
    made = replayed(journal, tmp_path, "--untimed", plan_options=("--routes", str(routes)))
    rows = bursts(made)
    assert sorted(set(rows["frame"].tolist())) == [0, 1, 2, 3]
    assert {frame: int(rows["events"][rows["frame"] == frame].sum()) for frame in range(4)} == dict.fromkeys(
        range(4), 10
    )
