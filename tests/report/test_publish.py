"""bench/campaigns/publish: a campaign in the pages of docs/results, and what is written by hand kept."""

import csv
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT
from synthetic import Campaign, latencies, lifelike

PUBLISH = ROOT / "bench" / "campaigns" / "publish"
ALLOCATORS = {"null": 0.05, "blockyard": 0.6, "tlsf": 1.4, "glibc": 1.0, "tlsf@prefaulted": 0.9}
EVERY_TABLE = (
    "machine",
    "peaks defaults",
    "latency game inherent defaults",
    "latency game as-run populated",
    "claims",
    "rates",
    "frames 144 Hz",
    "causes",
    "memory",
    "deferred",
)
Publish = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Campaign(tmp_path_factory.mktemp("publish") / "results", list(ALLOCATORS), repeats=2)
    base, pair = lifelike(30_000, seconds=3)
    looking = {"threshold_ns": 250, "events": 1, "ns_a_look": 250, "source": "getrusage", "reason": ""}
    for place, (name, speed) in enumerate(ALLOCATORS.items(), start=1):
        for repeat in (1, 2):
            made.run(
                name, latencies(base, speed, speed, place * 1000 + repeat), repeat, looking=looking, clock_step_ticks=2
            )
    made.events(pair, range(0, 3_000_000_000, 16_666_667))
    return made.directory


@pytest.fixture(scope="module")
def publish(campaign: Path) -> Publish:
    def call(*pages: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PUBLISH, campaign, *pages],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PYTHON": sys.executable},
        )

    return call


def page(folder: Path, *tables: str, picture: str = "game-causes.png") -> Path:
    marked = "\n\n".join(f"<!-- table {name} -->\nold\n<!-- end -->" for name in tables)
    path = folder / "page.md"
    path.write_text(
        f"# Findings\n\nBy hand, above.\n\n{marked}\n\n![What it was](pictures/{picture})\n\nBy hand, below.\n"
    )
    return path


def tables(text: str) -> dict[str, list[list[str]]]:
    """By name the cells of each table's rows, head and ruler included."""
    found = re.findall(r"<!-- table ([^>]+?) -->\n(.*?)<!-- end -->", text, re.DOTALL)
    return {
        name: [
            [cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines() if line.startswith("|")
        ]
        for name, body in found
    }


def test_every_table_is_filled_and_what_was_written_by_hand_stays(publish: Publish, tmp_path: Path) -> None:
    path = page(tmp_path, *EVERY_TABLE)
    done = publish(path)
    assert done.returncode == 0, done.stderr
    text = path.read_text()
    assert text.startswith("# Findings\n\nBy hand, above.\n") and text.endswith("By hand, below.\n")
    assert "\nold\n" not in text
    found = tables(text)
    for name in EVERY_TABLE[1:]:
        assert len(found[name]) >= 3, name
        assert len({len(row) for row in found[name]}) == 1, name
    assert "Test Processor 9000" in text.split("<!-- end -->")[0]
    assert (tmp_path / "pictures" / "game-causes.png").read_bytes().startswith(b"\x89PNG")
    assert "1 pages and 1 pictures" in done.stdout
    published = path.read_text()
    assert publish(path).returncode == 0 and path.read_text() == published  # again: the same


def test_its_figures_are_those_of_the_report(publish: Publish, campaign: Path, tmp_path: Path) -> None:
    path = page(tmp_path, "latency game inherent defaults")
    assert publish(path).returncode == 0
    shown = {row[0].rstrip("*"): row for row in tables(path.read_text())["latency game inherent defaults"]}
    with (campaign / "report" / "summary.csv").open(newline="") as file:
        known = {
            row["allocator"]: float(row["p99.9_ns"])
            for row in csv.DictReader(file)
            if (row["view"], row["operation"], row["part"], row["size_class"])
            == ("inherent", "malloc", "call+touch", "all")
        }
    assert {"blockyard", "glibc", "tlsf", "null"} <= shown.keys() and "tlsf@prefaulted" not in shown
    for name in ("blockyard", "glibc", "tlsf", "null"):
        value, unit = shown[name][3].strip("*").split()
        assert float(value) * {"ns": 1, "us": 1e3, "ms": 1e6}[unit] == pytest.approx(known[name], rel=0.006), name
    least = min(("blockyard", "glibc", "tlsf"), key=known.__getitem__)
    assert shown[least][3].startswith("**") and not shown["null"][3].startswith("**")


@pytest.mark.parametrize(
    "marked, picture, reason",
    [
        ("nonsense", "game-causes.png", "asks for a table 'nonsense'"),
        ("latency other inherent defaults", "game-causes.png", "shows other, which is not in the campaign (game)"),
        ("claims", "game-nothing.png", "there is no "),
    ],
)
def test_a_page_that_asks_for_what_is_not_there_is_refused_and_left_as_it_was(
    publish: Publish, tmp_path: Path, marked: str, picture: str, reason: str
) -> None:
    path = page(tmp_path, "claims", marked, picture=picture)
    before = path.read_text()
    done = publish(path)
    assert done.returncode != 0 and reason in done.stderr and "Traceback" not in done.stderr
    assert path.read_text() == before and not (tmp_path / "pictures").exists()


def test_a_campaign_with_a_damaged_run_is_refused_in_a_sentence(
    publish: Publish, campaign: Path, tmp_path: Path
) -> None:
    path, run = page(tmp_path, "latency game inherent defaults"), campaign / "runs/game/null/1x-page/1/run.json"
    before, text = run.read_text(), path.read_text()
    run.write_text(before.replace('"ticks_per_ns": 2.0', '"ticks_per_ns": null'))
    try:
        done = publish(path)
    finally:
        run.write_text(before)
    assert done.returncode != 0 and str(run) in done.stderr and "Traceback" not in done.stderr
    assert path.read_text() == text


def test_a_folder_that_is_no_campaign_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [PUBLISH, tmp_path], capture_output=True, text=True, check=False, env=os.environ | {"PYTHON": sys.executable}
    )
    assert done.returncode != 0 and "has no campaign.json" in done.stderr and "Traceback" not in done.stderr
