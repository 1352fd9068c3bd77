"""One known campaign, and the `blockyard report` command on it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from synthetic import FREE, MALLOC, Campaign, rows

ROOT = Path(__file__).resolve().parents[2]


def known_rows(repeat: int, slower: int = 0) -> np.ndarray:
    """1000 mallocs of 100 B, one a millisecond: calls of 1 to 1000 ns (1001 to 2000 in repeat 2) and touches of 100 ns,
    each freed 0.5 ms later in 50 ns."""
    entries = []
    for i in range(1000):
        call = i + 1 + 1000 * (repeat - 1) + slower
        entries.append((2 * i, MALLOC, 100, i * 1_000_000, 10 + 2 * call, 4 + 2 * 100))
        entries.append((2 * i + 1, FREE, 100, i * 1_000_000 + 500_000, 10 + 2 * 50, 0))
    return rows(entries)


def known_campaign(directory: Path, **settings: object) -> Campaign:
    """Allocators `quick` and `slow` (500 ns slower), two repeats each."""
    campaign = Campaign(directory, ["quick", "slow"], repeats=2, **settings)
    for repeat in (1, 2):
        campaign.run("quick", known_rows(repeat), repeat)
        campaign.run("slow", known_rows(repeat, 500), repeat)
    pair = np.arange(2000) ^ 1
    campaign.events(pair)
    return campaign


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return known_campaign(tmp_path / "results")


@pytest.fixture
def report(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "lab" / "python"), "COLUMNS": "80"}
        return subprocess.run(
            [sys.executable, "-m", "blockyard", "report", *map(str, arguments)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run
