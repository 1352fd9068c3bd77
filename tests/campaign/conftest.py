"""Fixtures of the campaign tests."""

import shutil
import subprocess
from pathlib import Path

import pytest
from campaign_lab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@pytest.fixture
def a_full_disk(tmp_path: Path) -> list[str]:
    """A command prefix under which `tmp_path/small` is a file system of 8 MB."""
    small = tmp_path / "small"
    small.mkdir()
    prefix = [
        "unshare",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        f'mount -t tmpfs -o size=8m none {small} && exec "$@"',
        "sh",
    ]
    if not shutil.which("unshare") or subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip(
            "SKIPPED LOUDLY: a small file system can't be mounted here (unshare --mount), so the full disk "
            "is not tested"
        )
    return prefix
