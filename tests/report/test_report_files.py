"""The per-allocation CSV and the Parquet of all samples, row by row."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from synthetic import FREE, MALLOC, REALLOC, Campaign, latencies, lifelike, rows

from blockyard.analysis.distribution import SATURATED
from blockyard.errors import UserError
from blockyard.report.builder import build
from blockyard.report.options import ReportOptions

NONE = 4294967295
CSV = ReportOptions(everything=True, pictures=False, allocations_csv=True)


def csv(campaign: Campaign, name: str = "one-1.csv") -> list[str]:
    build(campaign.directory, options=CSV)
    path = campaign.directory / "report" / "game" / "1x-page" / "allocations" / name
    return path.read_text().splitlines()


def test_allocations_csv_has_the_studys_five_columns_row_by_row(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    # Event 2 is a frame mark and has no row; event 0 was allocated by the preamble; floors are 10 and 4 at 2 ticks/ns.
    campaign.run(
        "one",
        rows(
            [
                (1, MALLOC, 48, 100, 10 + 60, 4 + 14),
                (3, FREE, 16, 200, 10 + 30, 0),
                (4, MALLOC, 99, 300, 10 + 80, 0),
                (5, FREE, 48, 400, 10 + 26, 0),
            ]
        ),
    )
    campaign.events(np.array([3, 5, NONE, 0, NONE, 1]))
    assert csv(campaign) == [
        "replayAllocTimestamp,allocTime,allocSize,replayFreeTimestamp,freeTime",
        "100,37,48,400,13",
        "300,40,99,0,0",
    ]


def test_a_reallocate_ends_one_row_and_begins_another(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    campaign.run(
        "one", rows([(0, MALLOC, 8, 10, 10 + 20, 0), (1, REALLOC, 16, 20, 10 + 200, 0), (2, FREE, 16, 30, 10 + 40, 0)])
    )
    campaign.events(np.array([1, 2, 1]))
    assert csv(campaign)[1:] == ["10,10,8,20,0", "20,100,16,30,20"]


def test_a_block_freed_after_the_stretch_counts_as_never_freed(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    campaign.run("one", rows([(0, MALLOC, 8, 10, 10 + 20, 0)]))
    campaign.events(np.array([900]))
    assert csv(campaign)[1:] == ["10,10,8,0,0"]


def test_a_lifelike_allocations_csv_has_a_row_for_every_allocation_in_order(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    base, pair = lifelike(5000)
    campaign.run("one", latencies(base, 1, 1, 1001))
    campaign.events(pair)
    table = np.loadtxt(csv(campaign), delimiter=",", skiprows=1, dtype=np.int64)
    made = base[base["kind"] != FREE]
    assert np.array_equal(table[:, 2], made["size"])
    assert np.all(table[:, 3] >= table[:, 0] - 1000) and np.all(np.diff(table[:, 0]) > -1001)


def test_allocations_csv_without_the_pairs_is_refused(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    campaign.run("one", rows([(0, MALLOC, 8, 10, 30, 0)]))
    with pytest.raises(UserError, match=r"pairs\.npy is missing"):
        build(campaign.directory, options=CSV)


def test_samples_parquet_holds_every_sample_of_every_repeat(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"], repeats=2)
    base, pair = lifelike(5000)
    given = [latencies(base, 1, 1, 1000 + repeat) for repeat in (1, 2)]
    given[1]["call"][17] = SATURATED
    for repeat, made in enumerate(given, start=1):
        campaign.run("one", made, repeat)
    campaign.events(pair)
    build(campaign.directory, options=ReportOptions(samples_parquet=True, pictures=False))
    table = pyarrow.parquet.read_table(campaign.directory / "report" / "game" / "1x-page" / "samples" / "one.parquet")
    for name in ("event", "kind", "thread", "size", "frame"):
        assert np.array_equal(table[name].to_numpy(), base[name]), name
    for repeat, made in enumerate(given, start=1):
        assert np.array_equal(table[f"start_{repeat}"].to_numpy(), made["start"])
        net = np.where(made["call"] == SATURATED, SATURATED, np.maximum(made["call"].astype(np.int64) - 10, 0))
        assert np.array_equal(table[f"call_{repeat}"].to_numpy(), net)
        assert np.array_equal(table[f"touch_{repeat}"].to_numpy(), np.maximum(made["touch"].astype(np.int64) - 4, 0))
    facts = json.loads(table.schema.metadata[b"blockyard"])
    assert facts["ticks_per_ns"] == [2.0, 2.0] and facts["floor_call_ticks"] == [10, 10]
