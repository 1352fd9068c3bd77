"""One known campaign, and the `blockyard report` command on it."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import in_process
import pytest
from synthetic import Campaign, known_campaign


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return known_campaign(tmp_path / "results")


@pytest.fixture
def report(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        return in_process.blockyard("report", *arguments, cwd=tmp_path)

    return run
