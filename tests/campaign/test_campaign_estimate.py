"""Time left: from the journals at first, from the runs that have ended later on."""

from types import SimpleNamespace

import pytest

from blockyard.campaign.estimate import Estimate
from blockyard.campaign.schedule import Run, schedule
from blockyard.units import clock_text

JOURNALS = [
    SimpleNamespace(name="j", duration_s=8.0, measured_events=1_000_000),
    SimpleNamespace(name="k", duration_s=2.0, measured_events=1000),
]


@pytest.fixture
def estimate() -> Estimate:
    return Estimate(JOURNALS)


def run(journal: str = "j", pace: str = "1x") -> Run:
    return Run(journal, "glibc", pace, "page", 1, 0)


def test_a_paced_run_takes_the_journals_time_divided_by_the_pace(estimate: Estimate) -> None:
    assert estimate.nominal_s(run(pace="1x")) == 8.0
    assert estimate.nominal_s(run(pace="10x")) == 0.8


def test_a_run_at_max_pace_is_expected_by_its_events(estimate: Estimate) -> None:
    assert estimate.nominal_s(run("j", "max")) == 1000 * estimate.nominal_s(run("k", "max"))


def test_runs_that_ended_replace_what_was_expected_of_their_like(estimate: Estimate) -> None:
    estimate.observed(run(), 9.0)
    estimate.observed(run(), 11.0)
    assert estimate.expected_s(run()) == 10.0


def test_the_overhead_that_was_observed_is_expected_of_other_journals(estimate: Estimate) -> None:
    estimate.observed(run("j"), 9.5)
    assert estimate.expected_s(run("k")) == 2.0 + 1.5


def test_time_left_is_the_sum_over_the_runs_that_are_left(estimate: Estimate) -> None:
    runs = schedule(["j", "k"], ["A", "B"], ["1x"], ["page"], 2)
    estimate.observed(run("j"), 8.5)
    estimate.observed(run("k"), 2.5)
    assert estimate.left_s(runs) == 4 * 8.5 + 4 * 2.5
    assert estimate.left_s([]) == 0


def test_a_run_has_far_more_time_than_it_needs_before_it_counts_as_hung(estimate: Estimate) -> None:
    assert estimate.limit_s(run()) > 10 * estimate.expected_s(run())


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0 s"), (59.4, "59 s"), (59.6, "1:00 min"), (187, "3:07 min"), (4320, "1:12 h")]
)
def test_times_are_written_as_a_person_reads_them(seconds: float, text: str) -> None:
    assert clock_text(seconds) == text
