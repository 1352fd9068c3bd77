"""Memory and deferred cost of campaigns whose every byte is known."""

import json
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest
from synthetic import MALLOC, Campaign, rows

from blockyard.analysis import cuts, figures, memory, samples, sections
from blockyard.analysis.figures import AllocatorFigures
from blockyard.report.builder import build
from blockyard.report.options import ReportOptions

MIB = 1 << 20
S = 10**9
# Up to 100 MiB live with 10 % on top, down to 20 MiB, and a second later half of the fall given back.
COURSE = [
    (0, 0, 0, 0, 0, 0, 0),
    (1 * S, 110 * MIB, 100 * MIB, 1000, 500, 0, 0),
    (2 * S, 110 * MIB, 20 * MIB, 200, 500, 0, 0),
    (3 * S, 70 * MIB, 20 * MIB, 200, 700, 0, 0),
    (10 * S, 70 * MIB, 20 * MIB, 200, 700, 0, 0),
]


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    made = Campaign(tmp_path / "r", ["big", "small"])
    for name, call, peak in (("big", 100, 110 * MIB), ("small", 1000, 60 * MIB)):
        folder = made.run(
            name,
            rows([(i, MALLOC, 64, i * 500_000, 10 + 2 * call, 0) for i in range(20_000)]),
            peak_resident_bytes=peak,
            wall_ns=10 * S,
            minor_faults=5000,
        )
        np.save(folder / "memory.npy", np.array(COURSE, samples.MEMORY))
    return made


def measured(campaign: Campaign) -> list[AllocatorFigures]:
    section = sections.read(campaign.directory).sections[0]
    return [figures.measure(one, cuts.of(section)) for one in section.measured]


def test_fragmentation_is_told_apart_at_the_moment_of_most_live_bytes(campaign: Campaign) -> None:
    members = measured(campaign)
    found = memory.figures(members[0], memory.times(members))
    assert found.peak == 110 * MIB and found.peak_live == pytest.approx(100 * MIB, rel=0.02)
    assert found.overhead == pytest.approx(0.1, abs=0.01)
    assert found.bytes_a_block == pytest.approx(10 * MIB / 1000, rel=0.05)
    assert found.kept == pytest.approx(110 * MIB - 20 * MIB * 1.1, rel=0.05)
    assert found.faults_per_s == 500


def test_rounding_and_bookkeeping_are_told_apart_where_the_allocator_tells(campaign: Campaign) -> None:
    path = campaign.folder("big") / "run.json"
    told = {"blocks": 200, "asked_bytes": 20_000, "usable_bytes": 62_400, "rounding_bytes": 2_400}
    path.write_text(json.dumps({**json.loads(path.read_text()), "live_at_stop": told}))
    members = measured(campaign)
    big, small = (memory.figures(one, memory.times(members)) for one in members)
    assert big.rounding_a_block == 12 and big.bookkeeping_a_block == pytest.approx(big.bytes_a_block - 12)
    assert small.rounding_a_block is None and small.bookkeeping_a_block is None
    text = build(campaign.directory, options=ReportOptions(everything=True, pictures=False)).text
    table = text.split("internal fragmentation, a live block: defaults")[1].splitlines()
    assert table[3].split()[-2:] != ["–", "–"] and table[4].split()[-2:] == ["–", "–"]


def test_what_is_given_back_counts_for_a_second_after_the_fall(campaign: Campaign) -> None:
    members = measured(campaign)
    gone = memory.figures(members[0], memory.times(members)).unload
    assert (gone.begin_ns / S, gone.end_ns / S) == pytest.approx((1, 2), abs=0.05)
    assert gone.freed == pytest.approx(80 * MIB, rel=0.03) and gone.returned == pytest.approx(40 * MIB, rel=0.05)


def test_page_faults_a_second_are_those_of_their_step(campaign: Campaign) -> None:
    members = measured(campaign)
    found = memory.series(members[0], memory.times(members))
    assert found.faults_per_s[np.searchsorted(found.times_ns, 0.5 * S)] == pytest.approx(500, rel=0.02)
    assert found.faults_per_s[-1] == 0


def test_nobody_beats_a_pareto_point_in_both(campaign: Campaign) -> None:
    found = {point.allocator: point for point in memory.pareto(measured(campaign))}
    assert found["big"].best and found["small"].best
    assert (found["big"].peak, found["big"].p999_ns) == (110 * MIB, 100)


def test_deferred_cost_is_the_median_over_repeats_and_unknown_where_not_measured(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"], repeats=3)
    for repeat, cpu in enumerate((5, 7, 100), start=1):
        campaign.run(
            "one",
            rows([(0, MALLOC, 64, 0, 10, 0)]),
            repeat,
            timed_ns=[0, 90, 1, 50][repeat],
            background={"threads": 2, "cpu_ns": cpu, "names": ["purger"]},
            thread_start_ns=[1000, 3000],
            after_last_free={"cpu_ns": cpu * 2},
            walk_ns_a_block=3.5,
        )
    made = build(campaign.directory, options=ReportOptions(everything=True, pictures=False)).json["sections"][0]
    found = {table["title"].partition(":")[0]: table["rows"][0]["cells"] for table in made["tables"] if table["rows"]}
    calls, threads, their_cpu, together, _ = found["processor time"]
    assert (threads, their_cpu) == (2, 7)
    assert (calls, together) == (50, 95), "the sum of each repeat, then the median of the sums"
    assert found["after the last free"][:2] == [14, None]
    assert found["threads and placement"][:3] == [2000, None, 3.5]


def test_the_report_has_memory_over_time_and_pareto_as_tables_and_pictures(campaign: Campaign) -> None:
    result = build(campaign.directory, options=ReportOptions(everything=True))
    assert {path.name for path in result.pictures} >= {"memory.png", "memory.svg", "pareto.png", "pareto.svg"}
    titles = [one["title"] for one in result.json["sections"][0]["tables"]]
    assert any(title.startswith("given back after the largest fall of live bytes") for title in titles)


def test_memory_csv_has_all_allocators_at_the_same_times(campaign: Campaign) -> None:
    out = build(campaign.directory, options=ReportOptions(everything=True, pictures=False)).out
    found = pyarrow.csv.read_csv(out / "memory.csv").to_pylist()
    times = {name: [row["time_ns"] for row in found if row["allocator"] == name] for name in ("big", "small")}
    assert times["big"] == times["small"] and len(times["big"]) == memory.POINTS
    last = found[memory.POINTS - 1]
    assert (last["resident_bytes"], last["live_bytes"], last["live_blocks"]) == (70 * MIB, 20 * MIB, 200)
    assert last["external_bytes"] == pytest.approx(48 * MIB, rel=0.02) and found[0]["external_bytes"] is None
