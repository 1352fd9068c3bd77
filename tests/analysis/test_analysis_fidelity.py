"""Grades of runs, and what the report says of those below grade."""

from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest
from synthetic import MALLOC, Campaign, rows

from blockyard.analysis import fidelity, journal_facts, sections, timeline
from blockyard.analysis.fidelity import Grade
from blockyard.report.builder import build
from blockyard.report.options import ReportOptions

MS = 1_000_000
TABLES = ReportOptions(everything=True, pictures=False)
LATE = {"p50": 10, "p99": 5 * MS, "p999": 6 * MS, "max": 7 * MS}


def graded(tmp_path: Path, pace: str = "1x", **facts: object) -> fidelity.Graded:
    campaign = Campaign(tmp_path / "r", ["one"], paces=(pace,))
    campaign.run("one", rows([(0, MALLOC, 8, 0, 30, 0)]), pace=pace, **facts)
    section = sections.read(campaign.directory).sections[0]
    return fidelity.grade(section.measured[0].runs[0], section)


@pytest.mark.parametrize(
    "facts, grade, poor",
    [
        ({}, Grade.GOOD, ()),
        ({"lateness_ns": {"p99": 0.5 * MS}}, Grade.FAIR, ()),
        ({"lateness_ns": LATE}, Grade.POOR, ("late p99",)),
        ({"order_inversions": 2, "events": 100}, Grade.FAIR, ()),
        ({"order_inversions": 20, "events": 100}, Grade.POOR, ("inversions",)),
        ({"interrupted_threads": 3, "replay_threads": 4}, Grade.POOR, ("lost threads",)),
        ({"floor_call_ticks": 100}, Grade.FAIR, ()),
        ({"floor_call_ticks": 400}, Grade.POOR, ("timer floor",)),
        ({"busy_cores": 0.1}, Grade.FAIR, ()),
        ({"busy_cores": 0.9}, Grade.POOR, ("busy cores",)),
        ({"busy_cores": None, "order_inversions": None, "lateness_ns": None}, Grade.GOOD, ()),
    ],
)
def test_a_run_is_graded_by_its_worst_subject(
    tmp_path: Path, facts: dict[str, object], grade: Grade, poor: tuple[str, ...]
) -> None:
    found = graded(tmp_path, **facts)
    assert (found.grade, found.poor) == (grade, poor)


@pytest.mark.parametrize("null, poor", [({}, ()), ({"lateness_ns": LATE}, ("late p99",))])
def test_lateness_that_null_does_not_show_is_the_allocators_own(
    tmp_path: Path, null: dict[str, object], poor: tuple[str, ...]
) -> None:
    campaign = Campaign(tmp_path / "r", ["one", "null"])
    made = rows([(0, MALLOC, 8, 0, 30, 0)])
    campaign.run("one", made, lateness_ns=LATE, order_inversions=1)
    campaign.run("null", made, order_inversions=0, **null)
    section = sections.read(campaign.directory).sections[0]
    found = fidelity.worst(section.measured[0], section)
    assert (found.poor, found.values["inversions"]) == (poor, 1)


def test_full_speed_has_no_pace_to_be_graded_by(tmp_path: Path) -> None:
    assert graded(tmp_path, "max", lateness_ns=LATE, interrupted_threads=4, replay_threads=4).grade is Grade.GOOD


@pytest.mark.parametrize(
    "facts, words",
    [
        (
            {"lateness_ns": LATE},
            "one could not keep the journal's pace in some run (one event in a hundred started 5.00 ms late or more): "
            "read those tails with care; replay on a machine with more free cores, close other programs, or choose a "
            "lower --pace",
        ),
        ({"interrupted_threads": 1, "replay_threads": 2}, "one: 50% of the threads lost their pace in some run"),
        ({"order_inversions": 2, "events": 10}, "one: 20.0% of the events of some run came before one that"),
        ({"floor_call_ticks": 1000}, "one: an empty timed call takes up to 500 ns"),
        ({"busy_cores": 1.5}, "one: others took up to 1.50 cores of the machine during a run: close what else runs"),
    ],
)
def test_a_run_below_grade_says_so_with_what_to_do(tmp_path: Path, facts: dict[str, object], words: str) -> None:
    campaign = Campaign(tmp_path / "r", ["one", "two"])
    campaign.run("one", rows([(0, MALLOC, 8, 0, 30, 0)]), **facts)
    campaign.run("two", rows([(0, MALLOC, 8, 0, 30, 0)]))
    section = build(campaign.directory, options=TABLES).json["sections"][0]
    [sentence] = section["warnings"]
    assert sentence.startswith(words)
    [grades] = [one["rows"] for one in section["tables"] if one["title"].startswith("fidelity")]
    assert {row["name"]: row["cells"][0] for row in grades} == {"one": "poor", "two": "good"}


def test_runs_csv_has_the_grade_of_each_run_and_what_made_it(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"], repeats=2)
    campaign.run("one", rows([(0, MALLOC, 8, 0, 30, 0)]), 1)
    campaign.run("one", rows([(0, MALLOC, 8, 0, 30, 0)]), 2, lateness_ns=LATE, busy_cores=0.9)
    out = build(campaign.directory, options=TABLES).out
    good, poor = pyarrow.csv.read_csv(out / "runs.csv").to_pylist()
    assert (good["repeat"], good["grade"], good["poor"], good["timer_floor_ns"]) == (1, "good", "", 5)
    assert (poor["repeat"], poor["grade"], poor["poor"]) == (2, "poor", "late p99, busy cores")
    assert (poor["late_p99_ns"], poor["late_most_ns"], poor["busy_cores"]) == (5 * MS, 7 * MS, 0.9)


def test_a_count_that_no_column_holds_is_not_known(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"], repeats=2)
    campaign.run("one", rows([(0, MALLOC, 8, 0, 30, 0)]), 1)
    campaign.run("one", rows([(0, MALLOC, 8, 0, 30, 0)]), 2, major_faults=2**64 - 1)
    out = build(campaign.directory, options=TABLES).out
    assert [row["major_faults"] for row in pyarrow.csv.read_csv(out / "runs.csv").to_pylist()] == [0, None]


@pytest.mark.parametrize(
    "names, lock, pool",
    [
        (["tlsf"], "tlsf is not thread-safe: every call took a lock, and its figures", "tlsf works out of a pool"),
        (
            ["tlsf", "tlsf@prefaulted"],
            "tlsf and tlsf@prefaulted are not thread-safe: every call took a lock, and their figures",
            "tlsf and tlsf@prefaulted work out of a pool",
        ),
    ],
)
def test_locks_and_pools_that_allocators_need_are_said(tmp_path: Path, names: list[str], lock: str, pool: str) -> None:
    campaign = Campaign(tmp_path / "r", names)
    for name in names:
        campaign.run(name, rows([(0, MALLOC, 8, 0, 30, 0)]), needs_lock=True, needs_pool=True)
    said = build(campaign.directory, options=TABLES).json["sections"][0]["warnings"]
    assert [len(said), said[0].startswith(lock), said[1].startswith(pool)] == [2, True, True]


def test_the_journals_rhythm_is_told_in_twenty_slices_and_by_frame(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    starts = [i * MS for i in range(1000)] + [1000 * MS + i * 10 * MS for i in range(100)]
    campaign.run("one", rows([(i, MALLOC, 8, at, 10, 0) for i, at in enumerate(starts)]))
    line = timeline.read(sections.read(campaign.directory).sections[0])
    found = journal_facts.rhythm(line, np.arange(0, 2000, 20) * float(MS))
    assert len(found.per_second) == 20 and found.per_second[0] == pytest.approx(1000, rel=0.02)
    assert found.per_second[-1] == pytest.approx(100, rel=0.1)
    assert found.per_frame == pytest.approx((200 + 100) / 60, rel=0.02)
    assert sum(found.per_second) * found.slice_s == pytest.approx(1100, rel=0.01)


def test_the_report_shows_the_rhythm_once_a_section(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one", "two"])
    for name in ("one", "two"):
        campaign.run(name, rows([(i, MALLOC, 8, i * MS, 30, 0) for i in range(500)]))
    text = build(campaign.directory, options=TABLES).text
    assert text.count("operations per second, in 20 slices") == 1
    assert "Operations per frame over the last 60 %: 1" in text
