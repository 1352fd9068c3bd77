"""The slowest events of an allocator, one by one: what was called, in which repeats it was slow, and why."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from blockyard.analysis.distribution import SATURATED
from blockyard.analysis.figures import AllocatorFigures, open_rows


@dataclass(frozen=True)
class SlowEvent:
    """`latencies_ns` (of an allocation with its touch) and `causes` by repeat, in the order of the runs."""

    event: int
    kind: int
    thread: int
    size: int
    frame: int
    start_ns: int
    latencies_ns: tuple[float, ...]
    causes: tuple[int, ...]

    @property
    def worst(self) -> int:
        """The place of the repeat in which it was slowest."""
        return int(np.argmax(self.latencies_ns))


def of(one: AllocatorFigures, count: int) -> Iterator[SlowEvent]:
    """By their slowest repeat, the slowest first; at most as many as the digest kept."""
    opened = open_rows(one.runs, one.gross)
    for slow in one.digest.slowest()[:count]:
        rows = [run.rows[int(slow["row"])] for run in opened]
        latencies = tuple(
            (_net(row["call"], run.floor_call) + (_net(row["touch"], run.floor_touch) if row["touch"] else 0))
            * run.scale
            / one.runs.ticks_per_ns
            for row, run in zip(rows, opened, strict=True)
        )
        first = rows[0]
        facts = (int(first[field]) for field in ("event", "kind", "thread", "size", "frame", "start"))
        yield SlowEvent(*facts, latencies, tuple(int(row["cause"]) for row in rows))


def _net(ticks: int, floor: int) -> float:
    return float(ticks) if ticks == SATURATED else float(max(int(ticks) - floor, 0))
