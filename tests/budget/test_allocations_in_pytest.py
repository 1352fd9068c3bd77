"""blockyard.testing: what the fixture and the marker let pass, what they fail, and what does not count."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from recorded import BUILD

import blockyard

PREAMBLE = """
import sys
import threading
import pytest

class World:
    def __init__(self):
        self.cells = [0] * 100
    def step(self):
        self.cells[7] = self.cells[8]
    def grow(self):
        self.cells.append(object())

@pytest.fixture
def world():
    return World()
"""


def run(folder: Path, body: str) -> str:
    (folder / "conftest.py").write_text('pytest_plugins = ["blockyard.testing"]\n')
    (folder / "test_it.py").write_text(PREAMBLE + body)
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(blockyard.__file__).parents[1]),
        "BLOCKYARD_BUILD": str(BUILD),
        "PYTHONHASHSEED": "0",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", folder, folder]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout


PASSING = {
    "nothing is allocated, a hundred times": """
def test(allocations, world):
    for _ in range(100):
        with allocations(most=0):
            world.step()
""",
    "as much as may be": """
def test(allocations, world):
    with allocations(most=2) as block:
        world.grow()
    assert block.calls == 2 and block.bytes > 800
""",
    "the marker, with what happens at first use": """
@pytest.mark.allocations(most=0, again=3)
def test(world):
    if len(world.cells) == 100:
        world.grow()
    world.step()
""",
    "other threads": """
def test(allocations, world):
    stop, calls = [], []
    def other():
        while not stop:
            calls.append(object())
    thread = threading.Thread(target=other)
    thread.start()
    with allocations(most=0):
        while not calls:
            world.step()
    stop.append(True)
    thread.join()
""",
    "a tracer": """
def test(allocations, world):
    kept = []
    def trace(*event):
        kept.append([event])
        return trace
    sys.settrace(trace)
    with allocations(most=0):
        world.step()
    assert sys.gettrace() is trace and kept
    sys.settrace(None)
""",
}
FAILING = {
    "a block": (
        """
def test(allocations, world):
    with allocations(most=1):
        world.grow()
""",
        "allocated 2 times on this thread, and may 1",
    ),
    "a test": (
        """
@pytest.mark.allocations(most=0)
def test(world):
    world.name = object()
""",
        "on this thread, and may 0",
    ),
    "each time": (
        """
@pytest.mark.allocations(most=0, again=2)
def test(world):
    world.cells[0] = object()
""",
        "allocated 1 time on this thread, and may 0; that was run 2, and 1 in the first",
    ),
}


@pytest.mark.parametrize("case", PASSING)
def test_what_keeps_to_its_limit_passes(tmp_path: Path, case: str) -> None:
    assert "1 passed" in run(tmp_path, PASSING[case])


@pytest.mark.parametrize("case", FAILING)
def test_what_exceeds_its_limit_fails_and_says_by_how_much(tmp_path: Path, case: str) -> None:
    body, words = FAILING[case]
    said = run(tmp_path, body)
    assert words in said
    assert "1 failed" in said
