"""One lifelike campaign, its page, and one headless Chromium for all tests of this folder.

Screenshots lie in build/test-output/page.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import browser
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "report"))

import synthetic  # noqa: E402  (it lies in the folder named above)

SHOTS = ROOT / "build" / "test-output" / "page"
ALLOCATORS = [("null", 0.05, 0.0), ("glibc", 1.1, 1.2), ("jemalloc", 0.9, 0.8), ("mimalloc", 0.7, 0.5)]
EVENTS, REPEATS, SECONDS = 60_000, 3, 6.0


def report(directory: Path, *options: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """`blockyard report DIRECTORY --html`, tables and page alone."""
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "blockyard",
            "report",
            str(directory),
            "--all",
            "--html",
            "--no-pictures",
            "--no-samples-parquet",
            *map(str, options),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "lab" / "python"), **environment},
    )


def page_of(campaign: synthetic.Campaign) -> Path:
    done = report(campaign.directory)
    assert done.returncode == 0, done.stderr
    return campaign.directory / "report" / "report.html"


@pytest.fixture(scope="session")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> synthetic.Campaign:
    made = synthetic.lifelike_campaign(
        tmp_path_factory.mktemp("page") / "results", ALLOCATORS, EVENTS, REPEATS, SECONDS
    )
    for repeat, rows in enumerate(samples(made, "jemalloc"), start=1):
        # Slow and fast ones: some that the machine strikes every time, some that it strikes in one repeat alone.
        struck = (rows["event"] % 50 == 7) | (rows["event"] % 50 == 10 + repeat)
        rows["cause"][struck] |= 1 | 8
        np.save(made.folder("jemalloc", repeat) / "samples.npy", rows)
    return made


@pytest.fixture(scope="session")
def page(campaign: synthetic.Campaign) -> Path:
    return page_of(campaign)


@pytest.fixture(scope="session")
def chromium() -> Iterator[browser.Page]:
    program = browser.executable()
    if program is None:
        pytest.skip("Chromium is not installed (scripts/install-packages test): the report's page was NOT opened")
    with browser.chromium(program) as tab:
        yield tab


@pytest.fixture
def tab(chromium: browser.Page) -> browser.Page:
    """At a desk, in the light; whatever a test did before is undone."""
    chromium.size(1440, 1000)
    chromium.theme("light")
    chromium.sight("none")
    chromium.problems.clear()
    chromium.requests.clear()
    return chromium


@pytest.fixture
def opened(tab: browser.Page, page: Path) -> browser.Page:
    tab.open(page)
    return tab


def samples(campaign: synthetic.Campaign, allocator: str) -> list[np.ndarray]:
    """Of each repeat the rows."""
    return [np.load(campaign.folder(allocator, repeat) / "samples.npy") for repeat in range(1, REPEATS + 1)]


def nanoseconds(rows: np.ndarray) -> np.ndarray:
    """Call and touch together, floors (36 and 30 ticks of 2.6 a nanosecond) taken off, as the report does."""
    call = np.maximum(rows["call"].astype(np.int64) - 36, 0)
    touch = np.where(rows["touch"] > 0, np.maximum(rows["touch"].astype(np.int64) - 30, 0), 0)
    return (call + touch) / 2.6
