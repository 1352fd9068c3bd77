"""What each part of the release build's hardening costs: the shipped heap beside itself without that part.

The same code at another address is up to a quarter faster or slower, which is more than any check costs. So every
kind of heap is linked at many places (bench/heap/CMakeLists.txt), and what is compared is the median over them.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import tempfile
from pathlib import Path

PARTS = {
    0: "as shipped",
    1: "links not encoded",
    2: "freed blocks not marked",
    4: "the blocks freed last not compared",
    8: "range and alignment not checked",
    16: "the begin not checked",
    31: "none of it",
}
_RESAMPLES = 2000


def show(program: Path, repeats: int) -> dict[str, dict[str, float]]:
    """By what is left out, what the shipped heap takes of it."""
    layouts = len(list(program.parent.glob("bench_heap_soft0_layout*.so")))
    if layouts == 0:
        print("\nHardening: NOT MEASURED: its heaps were not built (scripts/build bench)")
        return {}
    times = {soft: _times(program, soft, layouts) for soft in PARTS}
    for repeat in range(repeats):
        for layout in range(layouts):
            # In turn, so that drift hits all equally; the least of a layout's repeats is the one least disturbed.
            for soft in PARTS if (repeat + layout) % 2 == 0 else reversed(PARTS):
                times[soft][layout] = min(times[soft][layout], _pair(program, soft, layout))
    counter = program.parent / "bench_heap_counts"
    print(
        f"\nHardening, left out part by part: the tight loop of a 64-byte pair, medians over {layouts} places in "
        f"memory (the least of {repeats + 1} at each); instructions"
    )
    found = {}
    for soft, title in PARTS.items():
        ours = times[soft]
        low, high = _interval(ours, times[0])
        found[title] = {"ratio": statistics.median(times[0]) / statistics.median(ours), "low": low, "high": high}
        print(
            f"  {title:<36} {statistics.median(ours):.3f} ns ({min(ours):.3f} to {max(ours):.3f})   shipped takes "
            f"{statistics.median(times[0]) / statistics.median(ours):.3f} of it ({low:.3f} to {high:.3f})   "
            f"{_instructions(counter, _library(program, soft, 0))}"
        )
    return found


def _library(program: Path, soft: int, layout: int) -> Path:
    return program.parent / f"bench_heap_soft{soft}_layout{layout}.so"


def _pair(program: Path, soft: int, layout: int) -> float:
    done = subprocess.run(
        [program, _library(program, soft, layout), "pair", "1", "0"], capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[1])


def _times(program: Path, soft: int, layouts: int) -> list[float]:
    return [_pair(program, soft, layout) for layout in range(layouts)]


def _interval(without: list[float], shipped: list[float]) -> tuple[float, float]:
    """The middle 95 % of the ratio of medians when the places of each kind are drawn again."""
    chance = random.Random(1)
    ratios = sorted(
        statistics.median(chance.choices(shipped, k=len(shipped)))
        / statistics.median(chance.choices(without, k=len(without)))
        for _ in range(_RESAMPLES)
    )
    return ratios[_RESAMPLES * 25 // 1000], ratios[_RESAMPLES * 975 // 1000]


def _instructions(counter: Path, library: Path) -> str:
    if not counter.is_file():
        return "instructions NOT COUNTED: no program counts them here"
    with tempfile.NamedTemporaryFile("r") as golden:
        subprocess.run([counter, library, golden.name, "this", "--record"], check=True)
        counts = {line.split()[1]: line.split()[2] for line in golden if line.startswith("this ")}
    return ", ".join(f"{name} {counts[name]}" for name in ("malloc-freed", "free-local", "free-remote-next"))
