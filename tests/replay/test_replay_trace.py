"""A traced run records which events make which system calls, and which calls the allocator's own threads make."""

import platform
import signal
from pathlib import Path

import numpy as np
import pytest
from replay_lab import EACH_PLANT, SANITIZED, Journal, Run, planned, planted, run, sooner_or_later, spaced

NUMBERS = {
    "x86_64": {"mmap": 9, "munmap": 11, "madvise": 28, "futex": 202, "clock_nanosleep": 230},
    "aarch64": {"mmap": 222, "munmap": 215, "madvise": 233, "futex": 98, "clock_nanosleep": 115},
}[platform.machine()]
OUTSIDE, BACKGROUND = 4294967295, 65535

CALLS = {"sleep": "clock_nanosleep", "futex": "futex", "map": "mmap", "unmap": "munmap", "advise": "madvise"}
PLANTS = EACH_PLANT | {141: "futex", 200: "map"}

pytestmark = pytest.mark.skipif(SANITIZED, reason="NOT RUN: a sanitizer's own system calls would be traced")


def traced(journal: Journal, folder: Path, plants: dict[int, str], *options: str, **keywords: str) -> Run:
    return planted(journal, folder, plants, "--trace", *options, **keywords)


def rows_of(made: Run) -> np.ndarray:
    return np.load(made.folder / "syscalls.npy")


@pytest.mark.parametrize("pace", ["1", "max"])
@pytest.mark.parametrize("threads", [1, 3])
def test_planted_calls_are_told_at_exactly_their_events(tmp_path: Path, pace: str, threads: int) -> None:
    rows = rows_of(traced(spaced(threads=threads), tmp_path, PLANTS, pace=pace))
    inside = rows[rows["event"] != OUTSIDE]
    wanted = [(event, NUMBERS[CALLS[kind]]) for event, kind in PLANTS.items() if kind in CALLS]
    assert list(zip(inside["event"].tolist(), inside["call"].tolist(), strict=True)) == wanted
    assert (inside["count"] == 1).all()
    assert inside["thread"].tolist() == [event // 2 % threads for event, _ in wanted]


def test_a_call_that_fails_is_counted_as_failed_and_its_time_is_told(tmp_path: Path) -> None:
    rows = rows_of(traced(spaced(60), tmp_path, {20: "futex", 30: "sleep"}))
    inside = rows[rows["event"] != OUTSIDE]
    assert inside["errors"].tolist() == [1, 0], "the futex wait ran out of time"
    assert (inside["ns"] >= 300_000).all()


def test_calls_of_the_allocators_own_threads_are_told_apart(tmp_path: Path) -> None:
    without = rows_of(traced(spaced(60), tmp_path, {}))
    assert not (without["thread"] == BACKGROUND).any(), "the replayer's own threads are not the allocator's"

    def sleeps() -> bool:
        rows = rows_of(traced(spaced(60), tmp_path, {}, more=",background=1"))
        background = rows[rows["thread"] == BACKGROUND]
        assert set(background["event"].tolist()) <= {OUTSIDE}
        return background["count"][background["call"] == NUMBERS["clock_nanosleep"]].sum() > 5

    assert sooner_or_later(sleeps), "every 2 ms, where it gets a processor"


def test_what_the_replayer_itself_does_is_left_out(tmp_path: Path) -> None:
    made = traced(spaced(60), tmp_path, {})
    rows = rows_of(made)
    assert made.facts["voluntary_switches"] > 0, "it slept before events"
    assert NUMBERS["clock_nanosleep"] not in rows["call"]
    assert (rows["event"] == OUTSIDE).all()


def test_a_traced_run_measures_nothing(tmp_path: Path) -> None:
    made = traced(spaced(60), tmp_path, {})
    assert sorted(path.name for path in made.folder.iterdir()) == ["run.json", "syscalls.npy"]
    assert made.facts["traced"] and made.facts["lateness_ns"] is None and made.facts["looking"]["source"] == "off"


def test_an_allocator_that_crashes_while_traced_says_where(tmp_path: Path) -> None:
    made = run(planned(spaced(20), tmp_path), tmp_path, "--trace", witness="crash_at=6")
    assert made.done.returncode == -signal.SIGSEGV
    assert made.facts["status"] == "failed" and "crashed (SIGSEGV) at event" in made.facts["reason"]
    assert not (made.folder / "syscalls.npy").exists()
