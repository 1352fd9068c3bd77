"""Sums come from untimed runs, less the same on null."""

import csv
from pathlib import Path

import numpy as np
import pytest
from synthetic import FREE, MALLOC, Campaign, rows

from blockyard.analysis import cuts, figures, noise, samples, sections, totals, worst_frames
from blockyard.analysis.latency import View
from blockyard.report.builder import build
from blockyard.report.options import ReportOptions

MS = 1_000_000


def call(event: int = 0, ns: int = 100, kind: int = MALLOC) -> tuple[int, ...]:
    return (event, kind, 64, event, 10 + 2 * ns, 0)


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """Two threads; 10, 12 and 14 ms on the first one, 4 of them the replay's own."""
    made = Campaign(tmp_path / "r", ["one", "two"], repeats=3, totals=True)
    for repeat in (1, 2, 3):
        for name, factor in (("one", 1), ("two", 2)):
            made.run(name, rows([call()]), repeat)
            made.bursts(name, [(5, 0, factor * (8 + 2 * repeat) * MS), (7, 1, 5 * MS)], repeat)
        made.bursts("null", [(5, 0, 4 * MS), (7, 1, 5 * MS)], repeat)
    return made


def measured(campaign: Campaign) -> list[figures.AllocatorFigures]:
    (section,) = sections.read(campaign.directory).sections
    cut = cuts.of(section)
    return [figures.measure(runs, cut) for runs in section.allocators]


def test_a_total_is_of_one_repeat_less_null_and_its_interval_of_the_same_without_each(campaign: Campaign) -> None:
    found = measured(campaign)[0].runs.totals.all
    assert (found.repeats, found.null_ns, found.ns) == (3, 9 * MS, 8 * MS)
    of_each = noise.Figure.of_all(8 * MS, [9 * MS, 8 * MS, 7 * MS], 1.0, 3)
    assert (found.low_ns, found.high_ns) == of_each.interval(0.95)


def test_a_total_that_is_lost_in_the_noise_of_null_has_ends_of_its_own_size(tmp_path: Path) -> None:
    made = Campaign(tmp_path / "r", ["one"], repeats=3, totals=True)
    for repeat, ms in ((1, 10), (2, 5), (3, 3)):
        made.run("one", rows([call()]), repeat)
        made.bursts("one", [(5, 0, ms * MS)], repeat)
        made.bursts("null", [(5, 0, 4 * MS)], repeat)
    found = measured(made)[0].runs.totals.all
    assert found.ns == MS
    assert found.low_ns == 0
    assert 4 * MS < found.high_ns < 40 * MS


def test_what_bursts_with_page_faults_take_beyond_those_around_them_is_first_touch(tmp_path: Path) -> None:
    made = Campaign(tmp_path / "r", ["one"], totals=True)
    made.run("one", rows([call()]))
    faulted = samples.FAULT_CALL
    made.bursts("one", [(9, 0, MS, 0, 0, 10), (19, 0, 7 * MS, 0, faulted, 10), (39, 0, 2 * MS, 0, 0, 20)])
    made.bursts("null", [(39, 0, 100, 0, 0, 40)])
    found = measured(made)[0].runs.totals.all
    assert found.touch_ns == 6 * MS
    assert found.null_ns == 100 - 40 * totals.HIDDEN_NS
    assert found.with_touch_ns == 10 * MS - found.null_ns


def test_where_every_burst_has_page_faults_nothing_tells_first_touch_apart_and_all_is_calls(tmp_path: Path) -> None:
    made = Campaign(tmp_path / "r", ["one"], totals=True)
    made.run("one", rows([call()]))
    made.bursts("one", [(9, 0, 7 * MS, 0, samples.FAULT_CALL, 10)])
    made.bursts("null", [(9, 0, 0)])
    found = measured(made)[0].runs.totals.all
    assert (found.ns, found.touch_ns) == (7 * MS, 0)


def test_the_data_have_a_row_of_each_thread_and_one_of_all(campaign: Campaign) -> None:
    build(campaign.directory, options=ReportOptions(pictures=False))
    with (campaign.directory / "report/totals.csv").open() as file:
        found = list(csv.DictReader(file))
    wanted = "journal pace touch allocator variant thread repeats total_ns low_ns high_ns null_ns touch_ns"
    assert list(found[0]) == wanted.split()
    assert [(row["allocator"], row["thread"], row["total_ns"]) for row in found] == [
        ("one", "all", "8000000"),
        ("one", "0", "8000000"),
        ("one", "1", "0"),
        ("two", "all", "20000000"),
        ("two", "0", "20000000"),
        ("two", "1", "0"),
    ]


def test_a_lone_repeat_has_no_interval_and_without_page_faults_all_is_calls(tmp_path: Path) -> None:
    made = Campaign(tmp_path / "r", ["one"], totals=True)
    made.run("one", rows([call()]))
    made.bursts("one", [(5, 0, 7 * MS)])
    made.bursts("null", [(5, 0, 4 * MS)])
    found = measured(made)[0].runs.totals.all
    assert (found.ns, found.low_ns, found.high_ns, found.touch_ns) == (3 * MS, None, None, 0)


def marked(tmp_path: Path, calls: list[tuple[int, ...]]) -> Campaign:
    """Frames end at the events 2, 5 and 8."""
    made = Campaign(tmp_path / "r", ["one"], totals=True)
    made.run("one", rows(calls))
    made.events(np.zeros(0), [0, 10 * MS, 20 * MS], frame_events=[2, 5, 8])
    return made


def test_frames_are_sums_of_bursts_less_null_and_the_machine_is_in_as_run_alone(tmp_path: Path) -> None:
    made = marked(tmp_path, [call(event, 4500) for event in (3, 4, 6, 7)])
    made.bursts("one", [(1, 0, 50 * MS), (3, 0, MS), (4, 0, 2 * MS, 4 * MS), (7, 0, 5 * MS), (7, 1, MS)])
    made.bursts("null", [(1, 0, MS), (4, 0, MS // 2), (7, 0, 6 * MS)])
    (one,) = measured(made)
    assert one.judged_frames(View.AS_RUN).tolist() == [[6.5 * MS, 0.0]]
    assert one.frames.of(View.INHERENT).tolist() == [[2.5 * MS, 0.0]]


def test_a_worst_frame_that_is_one_slow_call_is_as_long_in_both(tmp_path: Path) -> None:
    slow = 6 * MS
    made = marked(tmp_path, [call(3, slow), call(4, 0), call(6), call(7, 0, FREE)])
    made.bursts("one", [(4, 0, slow + 1000), (7, 0, 2000)])
    made.bursts("null", [(4, 0, 1000), (7, 0, 2000)])
    (one,) = measured(made)
    (worst, *_) = worst_frames.of(one, 1)
    assert worst.allocator_ns == slow == worst.slowest_ns
    assert worst.slowest_event == 3
