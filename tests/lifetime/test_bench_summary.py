"""What bench/lifetime/run makes of its measurements: ratios net of the loop, their spread, and the fastest peer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = ("nothing", "temp", "temp-cursor", "temp-job")


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("build")
    lines = folder / "lines"
    lines.write_text("".join(" ".join(map(str, (*row, 21.5))) + "\n" for row in measured()))
    paths = os.pathsep.join(str(ROOT / place) for place in ("lab/python", "bench/results"))
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / "lifetime" / "result.py", lines, "3", "32"],
        env=os.environ | {"PYTHONPATH": paths, "BLOCKYARD_BUILD": str(folder)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (folder / "results" / "lifetime.json").is_file()
    return done.stdout.splitlines()


def measured() -> list[tuple[str, str, float, float, float]]:
    rows = []
    for factor in (1.0, 3.0, 2.0):  # of the three repeats; the median one is the last
        rows += [(name, "1", 1.0, 1.0, 0.0) for name in (*OURS, "null", "slow", "fast")]
        rows += [(name, "2", 1.0, 1.0, 0.0) for name in ("nothing", "temp-job", "glibc")]
        for how in ("warm", "cold", "program"):
            rows += [
                ("nothing", how, 0.2, 0.1, 0.0),
                ("temp", how, 0.4 * factor, 0.2, 0.05),
                ("temp-cursor", how, 0.1, 0.1, 0.05),
                ("temp-job", how, 1.0, 1.0, 0.0),
                ("slow", how, 8.0, 2.0, 0.0),
                ("fast", how, 4.0, 2.1, 0.0),
            ]
    return rows


def program_line(lines: list[str], what: str) -> str:
    of_the_program = lines[next(i for i, line in enumerate(lines) if line.startswith("The program's own frames")) :]
    return " ".join(next(line for line in of_the_program if line.startswith(f"  {what} ")).split())


def test_a_ratio_is_of_medians_and_shows_the_repeats_least_and_greatest(summary: list[str]) -> None:
    line = program_line(summary, "temp, allocate")
    assert line.startswith(
        "temp, allocate 0.200 (0.100 to 0.300) 0.158 (0.053 to 0.263) fast (0.800 and 4.000, loop 0.200 ns)"
    )


def test_allocating_and_freeing_are_each_compared_with_the_fastest_at_it(summary: list[str]) -> None:
    assert " fast " in program_line(summary, "temp job, allocate")
    assert " slow " in program_line(summary, "temp job, free")


def test_what_is_shorter_than_the_loop_counts_as_nothing_not_less(summary: list[str]) -> None:
    assert " 0.000 (0.000 to 0.000) fast" in program_line(summary, "temp, allocate by cursor")


def test_no_loop_is_taken_out_of_the_frames_end(summary: list[str]) -> None:
    line = program_line(summary, "temp, the frame's end alone")
    assert line.startswith("temp, the frame's end alone 0.025 (0.025 to 0.025) 0.026 (0.026 to 0.026) slow")


def test_the_clock_is_told(summary: list[str]) -> None:
    assert any("took 21.5 ns" in line for line in summary)
