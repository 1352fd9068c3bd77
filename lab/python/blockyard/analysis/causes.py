"""Why events were slow: the bits of the column `cause`, the share of each cause in a tail, and the slowest events one
by one: what was called, in which repeats it was slow, and why."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from blockyard.analysis import passes
from blockyard.analysis.figures import AllocatorFigures, open_rows
from blockyard.analysis.latency import Operation, View
from blockyard.analysis.samples import FAULT_CALL, FAULT_TOUCH, HOST, MAJOR_FAULT, MIGRATED, PREEMPTED, SLEPT

MACHINE = PREEMPTED | MIGRATED | HOST
"""What the attributed view leaves out (lab/src/samples/row.hpp)."""

_BITS = (
    (PREEMPTED, "preempted"),
    (MIGRATED, "migrated"),
    (HOST, "the host paused"),
    (MAJOR_FAULT, "major page fault"),
    (FAULT_CALL, "page fault in the call"),
    (FAULT_TOUCH, "page fault in the touch"),
    (SLEPT, "slept"),
)

OWN, FAULTED, WAITED, INTERRUPTED, UNKNOWN = "own work", "page fault", "slept", "machine", "not looked at"
CLASSES = (OWN, FAULTED, WAITED, INTERRUPTED, UNKNOWN)
"""Each event belongs to one: the machine before all, then sleep, then page faults; what is left is the allocator's own
work. An event that faulted and slept slept: the fault is the smaller part."""


@dataclass(frozen=True)
class Part:
    """Events of one class and the time that they took together."""

    events: int
    ns: float


def words(cause: int) -> str:
    """`page fault in the touch, preempted`; `the allocator's own work`; `not looked at`."""
    if cause == 0:
        return "not looked at"
    return ", ".join(name for bit, name in _BITS if cause & bit) or "the allocator's own work"


def class_of(cause: int) -> str:
    if cause == 0:
        return UNKNOWN
    if cause & MACHINE:
        return INTERRUPTED
    if cause & SLEPT:
        return WAITED
    return FAULTED if cause & (FAULT_CALL | FAULT_TOUCH | MAJOR_FAULT) else OWN


def breakdown(one: AllocatorFigures, operation: Operation, above_ns: float) -> Mapping[str, Part]:
    """Of the events of all repeats that took longer, as-run, mallocs with their touch: by class, all classes there."""
    limit = above_ns * one.runs.ticks_per_ns
    found = {name: [0, 0.0] for name in CLASSES}
    for cause, ticks, counts in _by_cause(one, operation):
        first = int(np.searchsorted(ticks, limit, side="right"))
        sums = found[class_of(cause)]
        sums[0] += int(counts[first:].sum())
        sums[1] += float(np.dot(ticks[first:].astype(float), counts[first:].astype(float)))
    whole = one.whole(View.AS_RUN, operation)
    first = int(np.searchsorted(whole.ticks, limit, side="right"))
    ticks = float(np.dot(whole.ticks[first:].astype(float), whole.counts[first:].astype(float)))
    explained = [sum(parts) for parts in zip(*found.values(), strict=True)]
    found[UNKNOWN] = [int(whole.counts[first:].sum()) - explained[0], max(ticks - explained[1], 0.0)]
    return {name: Part(int(events), time / one.runs.ticks_per_ns) for name, (events, time) in found.items()}


def rates(one: AllocatorFigures, above_ns: float) -> dict[str, float] | None:
    """Events per second by class, mallocs and frees together; None where nothing was timed."""
    if one.measured_ns == 0:
        return None
    parts = [breakdown(one, operation, above_ns) for operation in (Operation.MALLOC, Operation.FREE)]
    return {name: sum(part[name].events for part in parts) / (one.measured_ns / 1e9) for name in CLASSES}


_OPERATIONS = {Operation.MALLOC: (0, 1), Operation.REALLOC: (1,), Operation.FREE: (2,)}


def _by_cause(one: AllocatorFigures, operation: Operation) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """(cause, ticks, counts) of every cause but 0 that occurred. A malloc is also a realloc, as everywhere."""
    if not one.looked_into:
        return []
    made = (
        (cause, *one.digest.by_cause(native, cause))
        for native in _OPERATIONS[operation]
        for cause in range(1, passes.CAUSES)
    )
    return one.once(("causes", operation), lambda: [found for found in made if len(found[1])])


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


def slowest(one: AllocatorFigures, count: int) -> Iterator[SlowEvent]:
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
