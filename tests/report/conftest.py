"""One known campaign, and the `blockyard report` command on it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from synthetic import Campaign, known_campaign

ROOT = Path(__file__).resolve().parents[2]


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
