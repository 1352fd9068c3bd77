"""What the tests of the page share: a report with its page, the campaign's samples, where screenshots go."""

import subprocess
from pathlib import Path

import numpy as np
import synthetic
import the_command
from browser import Page
from the_command import ROOT

SHOTS = ROOT / "build" / "test-output" / "page"
ALLOCATORS = [("null", 0.05, 0.0), ("glibc", 1.1, 1.2), ("jemalloc", 0.9, 0.8), ("mimalloc", 0.7, 0.5)]
EVENTS, REPEATS, SECONDS = 60_000, 3, 6.0


def report(directory: Path, *options: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """`blockyard report DIRECTORY --html`, tables and page alone."""
    options = ("--all", "--html", "--no-pictures", "--no-samples-parquet", *options)
    return the_command.blockyard("report", directory, *options, more=environment)


def page_of(campaign: synthetic.Campaign) -> Path:
    the_command.success(report(campaign.directory))
    return campaign.directory / "report" / "report.html"


def samples(campaign: synthetic.Campaign, allocator: str) -> list[np.ndarray]:
    """Of each repeat the rows."""
    return [np.load(campaign.folder(allocator, repeat) / "samples.npy") for repeat in range(1, REPEATS + 1)]


def nanoseconds(rows: np.ndarray) -> np.ndarray:
    """Call and touch together, floors (36 and 30 ticks of 2.6 a nanosecond) taken off, as the report does."""
    call = np.maximum(rows["call"].astype(np.int64) - 36, 0)
    touch = np.where(rows["touch"] > 0, np.maximum(rows["touch"].astype(np.int64) - 30, 0), 0)
    return (call + touch) / 2.6


def slow(campaign: synthetic.Campaign, allocator: str, *, frees: bool = False) -> np.ndarray:
    """The events that the scatter marks: among the 20,000 slowest, and above what those are complete from."""
    repeats = samples(campaign, allocator)
    worst = np.max([nanoseconds(rows) for rows in repeats], axis=0)
    slowest = np.argsort(-worst, kind="stable")[:20_000]
    is_free = repeats[0]["kind"][slowest] == synthetic.FREE
    return slowest[(is_free == frees) & (worst[slowest] > worst[slowest].min())]


def shown_range(tab: Page) -> tuple[float, float]:
    """The stretch of time that all charts show, in seconds."""
    return tuple(
        float(tab.evaluate(f"document.getElementById('handle-{name}').getAttribute('aria-valuenow')"))
        for name in ("from", "to")
    )
