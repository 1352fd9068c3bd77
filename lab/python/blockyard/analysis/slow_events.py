"""The slowest events of an allocator, one by one: what was called, in which repeats it was slow, and why."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from blockyard.analysis.figures import AllocatorFigures, open_rows


@dataclass(frozen=True)
class SlowEvent:
    """`latencies_ns` (of an allocation with its touch) and `causes` by repeat, in the order of the runs."""

    event: int
    kind: int
    size: int
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
        place = int(slow["row"])
        rows = [run.rows[place : place + 1] for run in opened]
        latencies = tuple(
            float(run.ticks(row)[0]) / one.runs.ticks_per_ns for row, run in zip(rows, opened, strict=True)
        )
        facts = (int(rows[0][field][0]) for field in ("event", "kind", "size"))
        yield SlowEvent(*facts, latencies, tuple(int(row["cause"][0]) for row in rows))
