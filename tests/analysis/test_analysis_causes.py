"""Causes planted at known events come out at exactly those events, and the system calls of a traced run with them."""

import json
from pathlib import Path

import numpy as np
import pytest
from synthetic import FREE, MALLOC, Campaign, rows

from blockyard.analysis import causes, cuts, figures, sections, syscalls
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.latency import Operation
from blockyard.campaign.facts import MachineFacts
from blockyard.errors import UserError
from blockyard.report.builder import build
from blockyard.report.options import ReportOptions

LOOKING = {"threshold_ns": 250, "events": 5, "ns_a_look": 300, "source": "perf", "reason": None}
PLANTED = {
    30: (2_000, 1 | 2),
    31: (3_000, 1 | 4),
    60: (40_000, 1 | 16),
    90: (500_000, 1 | 8),
    91: (700_000, 1 | 128),
    120: (20_000, 1),
}
"""Event: latency in ns and cause. Even events are mallocs, odd ones frees."""
TABLES = ReportOptions(everything=True, pictures=False)


def planted(campaign: Campaign, name: str, repeat: int, slow: dict[int, tuple[int, int]]) -> None:
    entries = [
        (i, FREE if i % 2 else MALLOC, 64, i * 10_000_000, 10 + 2 * slow.get(i, (50, 0))[0], 0) for i in range(201)
    ]
    made = rows(entries)
    for event, (_, cause) in slow.items():
        made["cause"][event] = cause
    campaign.run(name, made, repeat, looking=LOOKING)


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    made = Campaign(tmp_path / "r", ["null", "one"], repeats=2)
    for repeat in (1, 2):
        planted(made, "null", repeat, {})
        planted(made, "one", repeat, PLANTED if repeat == 1 else {})
    return made


def measured(campaign: Campaign, name: str = "one") -> AllocatorFigures:
    section = sections.read(campaign.directory).sections[0]
    [runs] = [runs for runs in section.measured if runs.name == name]
    return figures.measure(runs, cuts.of(section))


def traced(campaign: Campaign, calls: list[tuple[int, int, int, int, int, int]], **facts: object) -> Path:
    folder = campaign.folder("one").parent / "trace"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"status": "ok", "traced": True, **facts}))
    np.save(folder / "syscalls.npy", np.array(calls, syscalls.ROW))
    return folder


@pytest.mark.parametrize(
    "cause, words",
    [
        (0, "not looked at"),
        (1, "the allocator's own work"),
        (1 | 2, "page fault in the call"),
        (1 | 4 | 8, "preempted, page fault in the touch"),
        (1 | 16, "slept"),
        (1 | 32 | 64, "migrated, major page fault"),
        (1 | 128, "the host paused"),
    ],
)
def test_a_cause_is_told_in_words(cause: int, words: str) -> None:
    assert causes.words(cause) == words


@pytest.mark.parametrize(
    "cause, name",
    [
        (0, causes.UNKNOWN),
        (1, causes.OWN),
        (2 | 1, causes.FAULTED),
        (1 | 2 | 16, causes.WAITED),
        (1 | 2 | 8 | 16, causes.INTERRUPTED),
    ],
)
def test_each_event_belongs_to_one_class_the_machine_first(cause: int, name: str) -> None:
    assert causes.class_of(cause) == name


def test_the_slowest_events_come_with_exactly_the_causes_planted(campaign: Campaign) -> None:
    found = {event.event: event for event in causes.slowest(measured(campaign), len(PLANTED))}
    assert set(found) == set(PLANTED)
    for event, (ns, cause) in PLANTED.items():
        assert found[event].causes == (cause, 0) and found[event].latencies_ns == (ns, 50)
        assert found[event].kind == (FREE if event % 2 else MALLOC) and found[event].worst == 0


def test_a_tail_is_broken_down_by_cause_in_events_and_time(campaign: Campaign) -> None:
    one = measured(campaign)
    mallocs, frees = (causes.breakdown(one, operation, 1000) for operation in (Operation.MALLOC, Operation.FREE))
    assert {name: (part.events, part.ns) for name, part in mallocs.items()} == {
        causes.OWN: (1, 20_000),
        causes.FAULTED: (1, 2000),
        causes.WAITED: (1, 40_000),
        causes.INTERRUPTED: (1, 500_000),
        causes.UNKNOWN: (0, 0),
    }
    assert frees[causes.FAULTED].events == frees[causes.INTERRUPTED].events == 1


def test_rates_by_cause_add_up_to_the_rate_of_all(campaign: Campaign) -> None:
    one = measured(campaign)
    for limit in figures.RATE_LIMITS_NS:
        assert sum(causes.rates(one, limit).values()) == pytest.approx(one.rate_above(limit))


def test_slow_events_that_nobody_looked_at_are_counted_as_such(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    campaign.run("one", rows([(0, MALLOC, 8, 0, 10 + 20_000, 0), (1, MALLOC, 8, 9, 10, 0)]))
    found = causes.breakdown(measured(campaign), Operation.MALLOC, 1000)
    assert found[causes.UNKNOWN] == causes.Part(1, 10_000)


def test_system_calls_are_joined_by_event(campaign: Campaign) -> None:
    traced(
        campaign,
        [(60, 0, 202, 0, 1, 40_000), (syscalls.OUTSIDE, 0, 28, 1, 7, 9), (30, 0, 9, 0, 1, 5), (30, 0, 28, 0, 3, 5)],
    )
    trace = syscalls.read(measured(campaign).runs, MachineFacts(architecture="x86_64"))
    assert trace.of_event(30) == [("mmap", 1), ("madvise", 3)] and trace.of_event(31) == []
    assert trace.totals() == {"futex": 1, "mmap": 1, "madvise": 3} and trace.outside() == {"madvise": 7}


def test_system_calls_of_the_allocators_own_threads_stand_apart(campaign: Campaign) -> None:
    traced(
        campaign,
        [
            (syscalls.OUTSIDE, 1, 11, 0, 2, 9),
            (syscalls.OUTSIDE, syscalls.OWN_THREAD, 28, 0, 7, 9),
            (syscalls.OUTSIDE, syscalls.OWN_THREAD, 230, 0, 50, 9),
        ],
    )
    of_ends, of_own = (cells for title, cells in of_one(campaign) if title.startswith("system calls"))
    assert of_ends == ["0 + 2", "0 + 2"]
    assert of_own == [57, "clock_nanosleep x50, madvise x7"]


def test_the_report_names_each_slow_event_with_its_cause_and_calls(campaign: Campaign) -> None:
    traced(campaign, [(60, 0, 202, 0, 1, 40_000)])
    named = {cells[0]: cells[-1] for title, cells in of_one(campaign) if title == "the slowest events: defaults"}
    assert (named[91], named[90], named[60]) == ("the host paused", "preempted", "slept; futex")


def of_one(campaign: Campaign) -> list[tuple[str, list]]:
    """Titles of the whole report's tables with the cells of the allocator `one`."""
    tables = build(campaign.directory, options=TABLES).json["sections"][0]["tables"]
    return [(table["title"], row["cells"]) for table in tables for row in table["rows"] if row["name"] == "one"]


def test_without_looking_the_report_says_how_to_have_causes(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    campaign.run("one", rows([(0, MALLOC, 8, 0, 10, 0)]))
    text = " ".join(build(campaign.directory, options=TABLES).text.split())
    assert "did not look into their slow events" in text and "'blockyard replay --trace' adds a traced run" in text


def test_a_damaged_trace_is_refused_by_name(campaign: Campaign) -> None:
    path = traced(campaign, []) / "syscalls.npy"
    path.write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"trace/syscalls\.npy is not a system call file"):
        build(campaign.directory, options=TABLES)


def test_the_cause_picture_is_drawn(campaign: Campaign) -> None:
    result = build(campaign.directory, options=ReportOptions(everything=True))
    assert {path.name for path in result.pictures} >= {"causes.png", "causes.svg", "frames.png"}
