"""Slow events carry why they were slow: what is planted at known events is reported at exactly those."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from replay_lab import EACH_PLANT, MS, SANITIZED, TOOLS, planted, sooner_or_later, spaced

LOOKED, CALL_FAULT, TOUCH_FAULT, PREEMPTED, SLEPT, MIGRATED, MAJOR, MACHINE = (1 << bit for bit in range(8))
BY_CHANCE = PREEMPTED | MIGRATED | MACHINE
"""What the machine may do to any event."""

PLANTS = EACH_PLANT | {160: "work", 180: "fault", 182: "touched", 201: "sleep", 202: "work", 204: "fault"}
PLANTS |= dict.fromkeys(range(207, 219, 3), "sleep") | dict.fromkeys(range(208, 219, 3), "futex")
CAUSES = {
    "sleep": SLEPT,
    "futex": SLEPT,
    "fault": CALL_FAULT,
    "touched": TOUCH_FAULT,
    **dict.fromkeys(("map", "unmap", "advise", "work"), 0),
}

pytestmark = pytest.mark.skipif(SANITIZED, reason="NOT RUN: a sanitizer's own faults would be measured")


def check(rows: np.ndarray, plants: dict[int, str]) -> None:
    """Exactly the planted causes at exactly their events; the machine's own may come on top anywhere. Where it
    interrupts a reading, nobody knows whether the event slept: of several that do, most are known."""
    wanted = {event: LOOKED | CAUSES[kind] for event, kind in plants.items()}
    found = {int(row["event"]): int(row["cause"]) & ~BY_CHANCE for row in rows[rows["cause"] != 0]}
    for kind in ("sleep", "futex"):
        slept = [event for event, planted_kind in plants.items() if planted_kind == kind]
        unknown = [event for event in slept if found.get(event) == LOOKED]
        assert 2 * len(unknown) <= len(slept) + 1
        found |= {event: wanted[event] for event in unknown}
    assert {event: cause for event, cause in found.items() if cause != LOOKED or event in wanted} == wanted


@pytest.mark.parametrize("source", ["perf", "getrusage"])
@pytest.mark.parametrize("pace", ["1", "50", "max"])
def test_planted_causes_are_reported_at_exactly_their_events(tmp_path: Path, source: str, pace: str) -> None:
    made = planted(spaced(), tmp_path, PLANTS, "--look-with", source, pace=pace)
    looking = made.facts["looking"]
    if looking["source"] != source:
        pytest.skip(f"NOT RUN with {source}: {looking['reason']}")
    check(made.rows, PLANTS)
    assert looking["events"] == (made.rows["cause"] != 0).sum() >= len(PLANTS)
    assert looking["ns_a_look"] > 0


def test_each_thread_gets_its_own_causes(tmp_path: Path) -> None:
    check(planted(spaced(threads=3), tmp_path, PLANTS).rows, PLANTS)


def test_a_base_that_is_not_renewed_is_noticed(tmp_path: Path) -> None:
    plants = dict.fromkeys(range(20, 80, 3), "sleep")
    made = planted(spaced(90, 5 * MS), tmp_path, plants)
    check(made.rows, plants)
    command = [TOOLS / "replay-stale" if part == made.done.args[0] else part for part in made.done.args]

    def noticed() -> bool:
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        try:
            check(made.rows, plants)
        except AssertionError:
            return True
        return False

    assert sooner_or_later(noticed), "who is late never sleeps between events, and has a good base"


def test_a_major_fault_has_a_cause_of_its_own(tmp_path: Path) -> None:
    made = planted(spaced(60), tmp_path, {30: "major"}, more=f",file={tmp_path / 'page'}")
    if made.facts["major_faults"] == 0:
        pytest.skip(f"NOT RUN: {tmp_path} lies on a file system that keeps its files in memory")
    assert made.rows["event"][made.rows["cause"] & MAJOR != 0].tolist() == [30]


def test_another_core_is_reported(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("NOT RUN: there is no other core")

    def hardly_any_other() -> bool:
        migrated = planted(spaced(60), tmp_path, {30: "migrate"}).rows["cause"] & MIGRATED != 0
        return migrated[30] and migrated.sum() <= 3

    assert sooner_or_later(hardly_any_other)


def test_what_is_fast_has_no_cause(tmp_path: Path) -> None:
    made = planted(spaced(), tmp_path, {100: "sleep"}, "--causes-above", "100000")
    rows = made.rows
    assert set(rows["event"][rows["cause"] != 0].tolist()) >= {100}
    took_ns = (rows["call"].astype(float) + rows["touch"]) / made.facts["ticks_per_ns"]
    assert (rows["cause"][took_ns > 101_000] != 0).all()
    assert not rows["cause"][took_ns < 99_000].any()


def test_causes_can_be_switched_off(tmp_path: Path) -> None:
    made = planted(spaced(60), tmp_path, {30: "sleep"}, "--causes-above", "0")
    assert not made.rows["cause"].any()
    numbers = {"threshold_ns": 0, "events": 0, "ns_a_look": 0.0}
    assert made.facts["looking"] == {**numbers, "source": "off", "reason": "it was switched off"}
