"""`blockyard info` arrives at the figures that stand beside the study's journals."""

import json
import os
import re
import warnings
from pathlib import Path

import pytest

from blockyard import native

ROOT = Path(__file__).resolve().parents[2]
JOURNALS = Path(os.environ.get("BLOCKYARD_JOURNALS", ROOT.parent / "shared" / "journals"))
NAMES = ["godot", "supertux", "warzone2100", "wesnoth", "zeroad"]


def listed(name: str) -> dict[str, str]:
    """The table "This file" of NAME.md."""
    text = (JOURNALS / f"{name}.md").read_text(encoding="utf-8").split("## This file")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", text, re.MULTILINE)
    return {what: value for what, value in rows if what not in ("what", "---")}


def number(text: str) -> int:
    return int(re.match(r"[\d,]+", text).group().replace(",", ""))


def mega(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def percents(shares: list[float]) -> list[str]:
    return [f"{share * 100:.1f}%" for share in shares]


@pytest.fixture(scope="module", params=NAMES)
def figures(request: pytest.FixtureRequest) -> tuple[dict, dict[str, str]]:
    journal = JOURNALS / f"{request.param}.journal.zst"
    if not journal.is_file():
        reason = f"{journal} is missing: set BLOCKYARD_JOURNALS to the folder of the study's journals to run this test"
        warnings.warn(f"NOT TESTED: {reason}", stacklevel=1)
        pytest.skip(reason)
    return json.loads(native.call("blockyard-journal", ["info", "--json", journal])), listed(request.param)


def test_lines_allocations_and_frees_agree(figures):
    got, want = figures
    assert got["events"] == number(want["lines"])
    assert got["allocations"] == number(want["mallocs"])
    assert got["frees"] == number(want["frees"])
    assert f"{got['duration_ns'] / 1e9:.2f} s" == want["duration"]


def test_the_preamble_agrees(figures):
    got, want = figures
    if "preamble" not in want:
        assert got["preamble"]["blocks"] == 0
        return
    blocks, live = re.match(r"([\d,]+) blocks, (.+ MB) live", want["preamble"]).groups()
    assert got["preamble"]["blocks"] == number(blocks)
    assert mega(got["preamble"]["bytes"]) == live


def test_totals_and_peaks_agree(figures):
    got, want = figures
    assert mega(got["total_bytes"]) == want["total allocated"]
    peak = f"{mega(got['max_live_bytes'])} (at {got['max_live_bytes_at_ns'] / 1e9:.1f} s)"
    assert peak == want["max live bytes"]
    assert got["max_live_blocks"] == number(want["max live blocks"])


def test_sizes_agree(figures):
    got, want = figures
    sizes = got["sizes"]
    assert f"{sizes['mean']:.1f} / {sizes['median']} bytes" == want["mean / median size"]
    assert f"{sizes['p99']} / {sizes['p999']} / {sizes['largest']} bytes" == want["p99 / p99.9 / largest size"]
    assert sizes["zero"] + got["preamble"]["zero_sizes"] == number(want["zero-size mallocs"])
    cumulative = " ".join(f"<={row['at_most']} {row['share'] * 100:.2f}%" for row in sizes["cumulative"])
    assert cumulative == want["sizes, cumulative"]


def test_threads_and_remote_frees_agree(figures):
    got, want = figures
    active = [thread for thread in got["threads"] if thread["allocations"] or thread["frees"]]
    assert len(active) == number(want["threads"])
    assert got["remote_frees"] == number(want["frees on another thread"])
    busiest = sorted(active, key=lambda thread: thread["allocations"] + thread["frees"], reverse=True)
    shown = [f"{t['allocations']:,} / {t['frees']:,} / {t['remote_frees']:,}" for t in busiest]
    listed_threads = want["busiest threads (mallocs, frees, of which of others' blocks)"].split("; ")
    assert sorted(shown[: len(listed_threads)]) == sorted(listed_threads)


def test_what_lives_at_the_end_agrees(figures):
    got, want = figures
    live = got["live_at_end"]
    assert f"{live['blocks']:,} blocks, {live['bytes']:,} bytes" == want["live at the end (leaked)"]


def test_lifetimes_agree(figures):
    got, want = figures
    shares = percents([row["share"] for row in got["lifetimes"]])
    assert shares == re.findall(r"[\d.]+%", want["lifetime of freed blocks"])


def test_frames_agree(figures):
    got, want = figures
    frames = got["frames"]
    most = frames["most_events"]
    assert f"{most['events']:,} at {most['at_ns'] / 1e9:.2f} s" == want["peak ops in a 16.7 ms frame"]
    most = frames["most_bytes"]
    assert f"{mega(most['bytes'])} at {most['at_ns'] / 1e9:.2f} s" == want["peak bytes allocated in a frame"]
    events = frames["events"]
    shown = f"p50 {events['p50']} p90 {events['p90']} p99 {events['p99']} p99.9 {events['p999']}"
    assert shown == want["ops per frame, whole"]
    half = f"{frames['share_with_half_of_events'] * 100:.2f} % of the frames"
    assert half == want["half of all ops fall in"]
