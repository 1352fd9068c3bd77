"""The journal that the tests of sites, export and diff share."""

from pathlib import Path

import pytest
from small_game import write


@pytest.fixture
def game(tmp_path: Path) -> Path:
    return write(tmp_path / "game.txt")
