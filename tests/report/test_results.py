"""bench/results/make: a campaign and the results of `make bench` as data, and data as the pages of docs/results."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from synthetic import LOOKING, Campaign, latencies, lifelike
from the_command import refusal, success

ROOT = Path(__file__).resolve().parents[2]

MAKE = ROOT / "bench" / "results" / "make"
PUBLISHED = ROOT / "docs" / "results"
# By name a speed: glibc is slower than blockyard in every repeat, dlmalloc faster.
ALLOCATORS = {"null": 0.05, "blockyard": 1.0, "glibc": 3.0, "dlmalloc": 0.4, "tlsf@prefaulted": 2.0}


def make(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [MAKE, *arguments], capture_output=True, text=True, check=False, env=os.environ | {"PYTHON": sys.executable}
    )


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Campaign(tmp_path_factory.mktemp("results") / "campaign", list(ALLOCATORS), repeats=3)
    base, pair = lifelike(30_000, seconds=3)
    for place, (name, speed) in enumerate(ALLOCATORS.items(), start=1):
        for repeat in (1, 2, 3):
            made.run(name, latencies(base, speed, speed, place * 1000 + repeat), repeat, looking=LOOKING)
    made.events(pair)
    return made.directory


@pytest.fixture(scope="module")
def pages(campaign: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    done = success(make("--collect", "--campaign", campaign, "--bench", PUBLISHED / "data" / "none", "-o", folder))
    assert done.stdout.startswith("collected standard.json\n")
    return folder


def rows(page: Path) -> dict[str, list[str]]:
    """By its first cell the last row of a page's tables that begins so."""
    lines = [line.strip("|").split("|") for line in page.read_text().splitlines() if line.startswith("|")]
    return {line[0].rstrip("*"): line for line in lines}


def table(page: Path, heading: str) -> list[list[str]]:
    """The rows of the first table below a heading."""
    text = page.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")][2:]


def test_a_page_shows_the_figures_of_the_report(pages: Path, campaign: Path, tmp_path: Path) -> None:
    report = [sys.executable, "-m", "blockyard", "report", campaign, "-o", tmp_path, "--no-pictures"]
    subprocess.run([*report, "--no-samples-parquet"], check=True, capture_output=True)
    with (tmp_path / "summary.csv").open(newline="") as file:
        known = {
            row["allocator"]: float(row["p99.9_ns"])
            for row in csv.DictReader(file)
            if (row["view"], row["operation"], row["part"], row["size_class"])
            == ("attributed", "malloc", "call+touch", "all")
        }
    shown = {row[0]: row for row in table(pages / "standard.md", "game")}
    for name in ("blockyard", "glibc", "dlmalloc"):
        assert 1000 * float(shown[name][2].replace(",", "")) == pytest.approx(known[name], rel=0.006), name
    assert list(shown)[:3] == ["dlmalloc", "blockyard", "glibc"]  # by p99.9
    assert "null" not in shown


def test_who_is_faster_beyond_noise_is_named_and_no_one_else(pages: Path) -> None:
    found = table(pages / "choosing.md", "Where another allocator's calls are faster")
    assert ["game", "malloc p99.9"] in [row[:2] for row in found]
    assert {row[3].split()[0] for row in found} == {"dlmalloc"}


def test_the_heaps_targets_are_judged_by_the_campaign(pages: Path) -> None:
    found = rows(pages / "heap.md")
    assert found["malloc, p50 to p99 beside the best general-purpose allocator"][1] == "no"
    assert found["malloc, p99.9 to worst, up to 1 MiB, beside prefaulted TLSF"][1] == "yes"


def test_data_alone_gives_the_same_pages(pages: Path, tmp_path: Path) -> None:
    shutil.copytree(pages / "data", tmp_path / "data")
    assert make("-o", tmp_path).returncode == 0
    for page in pages.glob("*.md"):
        assert (tmp_path / page.name).read_text() == page.read_text(), page.name
    assert (tmp_path / "images" / "percentiles.png").read_bytes().startswith(b"\x89PNG")


def test_published_pages_are_what_their_data_gives(tmp_path: Path) -> None:
    shutil.copytree(PUBLISHED / "data", tmp_path / "data")
    success(make("-o", tmp_path))
    by_hand = "trial.md"  # what single runs of a trial printed: there is no campaign behind it
    published = {page.name: page.read_text() for page in PUBLISHED.glob("*.md") if page.name != by_hand}
    assert published == {page.name: page.read_text() for page in tmp_path.glob("*.md")}, "run make results"
    assert sum(len(text.split()) for text in published.values()) <= 3500


def test_results_of_make_bench_become_data(pages: Path, tmp_path: Path) -> None:
    shutil.copytree(pages / "data", tmp_path / "data")
    parts = tmp_path / "parts"
    parts.mkdir()
    shutil.copy(PUBLISHED / "data" / "record.json", parts)
    success(make("--collect", "--campaign", tmp_path / "none", "--bench", parts, "-o", tmp_path))
    measured = json.loads((parts / "record.json").read_text())["figures"]["added_ns"]["without stacks"]
    assert rows(tmp_path / "lab.md")["Recording without stacks, added per event"][2] == f"{measured:.1f} ns"


def test_a_part_measured_in_pieces_keeps_its_other_figures(tmp_path: Path) -> None:
    def write(figures: str) -> dict[str, object]:
        code = f"import bench_result; print(bench_result.write('heap', {figures}))"
        path = os.pathsep.join(str(ROOT / place) for place in ("lab/python", "bench/results"))
        environment = os.environ | {"BLOCKYARD_BUILD": str(tmp_path), "PYTHONPATH": path}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        return json.loads(Path(done.stdout.strip()).read_text())

    assert write("{'one': 1, 'two': 2}")["figures"] == {"one": 1, "two": 2}
    again = write("{'two': 3}")
    assert again["figures"] == {"one": 1, "two": 3}
    assert again["machine"]["cores"] and re.fullmatch(r"\d{4}-\d\d-\d\d", str(again["measured_at"]))


def test_campaigns_older_than_the_standard_one_leave_the_data(campaign: Path, pages: Path, tmp_path: Path) -> None:
    standard = json.loads((pages / "data" / "standard.json").read_text())
    (tmp_path / "data").mkdir()
    for name, date in (("older", "2024-12-31"), ("newer", "2025-01-02")):
        (tmp_path / "data" / f"{name}.json").write_text(json.dumps(standard | {"measured_at": date}))
    assert make("--collect", "--campaign", campaign, "--bench", tmp_path, "-o", tmp_path).returncode == 0
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["newer.json", "standard.json"]
    assert "|2025-01-02|" in (tmp_path / "index.md").read_text()


def test_nothing_to_collect_and_no_data_are_refused_in_a_sentence(tmp_path: Path) -> None:
    said = refusal(make("--collect", "--campaign", tmp_path, "--bench", tmp_path, "-o", tmp_path / "out"))
    assert "there is nothing to collect" in said
    said = refusal(make("-o", tmp_path / "out"))
    assert "has no data" in said
    assert "Traceback" not in said and not (tmp_path / "out" / "index.md").exists()


def test_a_campaign_of_two_repeats_claims_nothing(campaign: Path, tmp_path: Path) -> None:
    small = tmp_path / "campaign"
    shutil.copytree(campaign, small)
    plan = json.loads((small / "campaign.json").read_text())
    (small / "campaign.json").write_text(json.dumps(plan | {"repeats": 2}))
    said = refusal(make("--collect", "--campaign", small, "--bench", tmp_path, "-o", tmp_path / "out"))
    assert "has 2 repeats; nothing is claimed of fewer than 3" in said
    assert not (tmp_path / "out").exists()


def test_a_campaign_that_is_not_finished_is_refused(campaign: Path, tmp_path: Path) -> None:
    begun = tmp_path / "campaign"
    shutil.copytree(campaign, begun)
    shutil.rmtree(begun / "runs" / "game" / "glibc" / "1x-page" / "3")
    said = refusal(make("--collect", "--campaign", begun, "--bench", tmp_path, "-o", tmp_path / "out"))
    assert "1 runs to go of 15" in said
    assert not (tmp_path / "out").exists()
