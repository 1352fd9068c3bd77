"""The order of runs and their shares: both must be the same wherever they are worked out."""

import pytest

from blockyard.campaign.schedule import Run, schedule, share
from blockyard.errors import UserError


def names(runs: list[Run]) -> list[str]:
    return [f"{run.allocator}{run.repeat}" for run in runs]


def test_repeats_are_interleaved_across_allocators_back_and_forth() -> None:
    runs = schedule(["j"], ["A", "B", "C"], ["1x"], ["page"], 3)
    assert names(runs) == ["A1", "B1", "C1", "C2", "B2", "A2", "A3", "B3", "C3"]


def test_runs_are_numbered_in_the_order_of_running() -> None:
    runs = schedule(["j", "k"], ["A", "B"], ["1x", "max"], ["none", "all"], 2)
    assert [run.order for run in runs] == list(range(2 * 2 * 2 * 2 * 2))


def test_one_journal_ends_before_the_next_begins() -> None:
    journals = [run.journal for run in schedule(["j", "k"], ["A"], ["1x", "max"], ["page"], 2)]
    assert journals == ["j"] * 4 + ["k"] * 4


@pytest.mark.parametrize("repeats", [5, 7, 10, 20])
def test_totals_take_a_fifth_more_than_twice_the_runs_at_most(repeats: int) -> None:
    timed = schedule(["j"], ["A", "null"], ["1x"], ["page"], repeats)
    runs = schedule(["j"], ["A", "null"], ["1x"], ["page"], repeats, totals=True)
    assert len(runs) <= 2.2 * len(timed)
    assert [run.order for run in runs] == list(range(len(runs)))
    kinds = {kind: sum(run.id.split("/")[2] == kind for run in runs) for kind in ("1x-page", "1x-page-untimed")}
    assert kinds == {"1x-page": len(timed), "1x-page-untimed": len(timed)}


def test_null_is_run_untimed_also_where_nobody_asked_for_it() -> None:
    runs = schedule(["j"], ["A"], ["1x"], ["none"], 2, totals=True)
    assert [(run.allocator, run.untimed) for run in runs if run.repeat == 1] == [
        ("A", False),
        ("null", True),
        ("A", True),
    ]


def test_a_run_is_named_by_journal_allocator_pace_touch_and_repeat() -> None:
    (run,) = schedule(["godot"], ["jemalloc@prefaulted"], ["1x"], ["page"], 1)
    assert run.id == "godot/jemalloc@prefaulted/1x-page/1"


@pytest.mark.parametrize("of", [1, 2, 3, 5, 7, 12, 24])
def test_every_run_is_in_exactly_one_share(of: int) -> None:
    runs = schedule(["j", "k", "l"], ["A", "B"], ["1x", "max"], ["page"], 4)
    shared = [run for number in range(1, of + 1) for run in share(runs, number, of)]
    assert sorted(shared, key=lambda run: run.order) == runs


@pytest.mark.parametrize("of", [2, 5, 11, 24])
def test_no_share_is_empty(of: int) -> None:
    runs = schedule(["j", "k", "l"], ["A", "B"], ["1x", "max"], ["page"], 4)
    assert all(share(runs, number, of) for number in range(1, of + 1))


def test_a_journal_stays_whole_while_there_are_enough_journals() -> None:
    runs = schedule(["j", "k", "l"], ["A", "B"], ["1x", "max"], ["page"], 4)
    for number in (1, 2):
        mine = {run.journal for run in share(runs, number, 2)}
        others = {run.journal for run in runs if run not in share(runs, number, 2)}
        assert not mine & others


def test_a_pace_and_touch_stays_whole_while_there_are_enough_of_them() -> None:
    runs = schedule(["j"], ["A", "B"], ["1x", "max"], ["page", "all"], 5)
    for number in range(1, 5):
        mine = share(runs, number, 4)
        assert len({(run.pace, run.touch) for run in mine}) == 1
        assert len(mine) == 10


def test_a_repeat_is_never_torn_between_shares() -> None:
    runs = schedule(["j"], ["A", "B", "C"], ["1x"], ["page"], 5)
    for number in range(1, 6):
        assert {run.allocator for run in share(runs, number, 5)} == {"A", "B", "C"}


def test_heavy_journals_are_spread_over_the_shares() -> None:
    runs = schedule(["heavy", "big", "light", "tiny"], ["A"], ["1x"], ["page"], 2)
    weights = {"heavy": 10.0, "big": 8.0, "light": 2.0, "tiny": 1.0}
    first = {run.journal for run in share(runs, 1, 2, lambda run: weights[run.journal])}
    assert first == {"heavy", "tiny"}


def test_more_shares_than_rounds_are_refused_with_their_number() -> None:
    runs = schedule(["j"], ["A", "B"], ["1x"], ["page"], 3)
    with pytest.raises(UserError, match="3 rounds"):
        share(runs, 1, 4)
