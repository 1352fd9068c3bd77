"""The recording of the planted scene that the tests of advice share."""

from pathlib import Path

import pytest
from planted import record


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("scene") / "scene.byj")
