"""libblockyard-frames.so where threads mark frames at once: no mark is lost, and no forked child waits for its lock."""

import os
import subprocess
from pathlib import Path

import pytest
from recorded import BUILD

from blockyard import native

PROGRAM = BUILD / "tests" / "trial" / "trial-frames"
THREADS, CHILDREN, MARKS, BYTES = 4, 8, 500, 24


@pytest.mark.parametrize("attempt", range(30))
def test_each_mark_of_each_thread_and_child_is_in_the_one_file_of_its_process(attempt: int, tmp_path: Path) -> None:
    library = native.path("libblockyard-frames.so")
    environment = {**os.environ, "LD_PRELOAD": str(library), "BLOCKYARD_FRAMES": str(tmp_path)}
    subprocess.run([PROGRAM, str(MARKS), "0", "threads"], env=environment, check=True, timeout=60)
    files = [path.read_bytes() for path in tmp_path.iterdir()]
    marks = [sum(any(content[at : at + BYTES]) for at in range(0, len(content), BYTES)) for content in files]
    assert sorted(marks) == [1] * CHILDREN + [THREADS * MARKS]
