"""What the tests of the page share: a report with its page, the campaign's samples, where screenshots go."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import synthetic

ROOT = Path(__file__).resolve().parents[2]
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


def samples(campaign: synthetic.Campaign, allocator: str) -> list[np.ndarray]:
    """Of each repeat the rows."""
    return [np.load(campaign.folder(allocator, repeat) / "samples.npy") for repeat in range(1, REPEATS + 1)]


def nanoseconds(rows: np.ndarray) -> np.ndarray:
    """Call and touch together, floors (36 and 30 ticks of 2.6 a nanosecond) taken off, as the report does."""
    call = np.maximum(rows["call"].astype(np.int64) - 36, 0)
    touch = np.where(rows["touch"] > 0, np.maximum(rows["touch"].astype(np.int64) - 30, 0), 0)
    return (call + touch) / 2.6
