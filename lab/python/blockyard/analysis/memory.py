"""Memory over a run: what is resident beside what is live, and what an allocator's share of it is made of.

What is visible from outside: at the moment of most live bytes an allocator has the fewest holes, so what is resident
beyond live *there* is internal fragmentation: rounding, bookkeeping, pages partly used. Where the allocator tells what
it rounds sizes up to, rounding stands apart, and the rest is bookkeeping and pages partly used. A resident byte beyond
that ratio at any later moment is external fragmentation: a hole, or memory that is held back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from blockyard.analysis import samples
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.latency import P999, Operation, View
from blockyard.analysis.sections import Run, middle
from blockyard.campaign.facts import RunFacts

POINTS = 400
_UNLOAD = 0.05
"""A fall of live bytes by this share of their peak is worth a word: a level that was unloaded."""
_SETTLES_NS = 1e9
"""So long after a fall an allocator may still give memory back and have it counted."""


@dataclass(frozen=True)
class MemorySeries:
    """One allocator's bytes at the section's common times, medians over repeats."""

    allocator: str
    times_ns: np.ndarray
    resident: np.ndarray
    live: np.ndarray
    blocks: np.ndarray
    faults_per_s: np.ndarray
    """In the step that ends at each time."""


@dataclass(frozen=True)
class Unload:
    """The largest fall of live bytes: between these times so much was freed, and so much given back a second later."""

    begin_ns: float
    end_ns: float
    freed: float
    returned: float


@dataclass(frozen=True)
class MemoryFigures:
    """Bytes, medians over repeats. None is not known."""

    peak: float | None
    peak_live: float
    at_peak_live: float
    """Resident at the moment of most live bytes."""
    overhead: float
    """Share of live bytes that is resident beyond them there: rounding, bookkeeping, pages partly used."""
    bytes_a_block: float | None
    """The same by live block."""
    rounding_a_block: float | None
    """Of that what the allocator rounds sizes up by, on average, in the blocks that were alive at the end."""
    bookkeeping_a_block: float | None
    """The rest: headers and tables, and pages partly used."""
    kept: float
    """The most that was resident beyond live and that overhead, later: holes, and memory kept for the next use."""
    unload: Unload | None
    teardown: float | None
    faults_per_s: float | None


@dataclass(frozen=True)
class ParetoPoint:
    """`best`: nobody else is lower in both. `ends_ns`: the interval of the latency."""

    allocator: str
    peak: float
    p999_ns: float
    ends_ns: tuple[float, float]
    best: bool


def times(figures: Sequence[AllocatorFigures]) -> np.ndarray:
    """The journal times at which all allocators of a section are compared."""
    end = min(
        (float(rows["time"][-1]) for one in figures for run in one.runs.runs if (rows := _rows(run)) is not None),
        default=0.0,
    )
    return np.linspace(0, end, POINTS)


def series(one: AllocatorFigures, at_ns: np.ndarray) -> MemorySeries | None:
    """None where no run sampled its memory."""
    found = [rows for run in one.runs.runs if (rows := _rows(run)) is not None]
    if not found or not len(at_ns):
        return None

    def over_time(name: str) -> np.ndarray:
        return np.median(
            [np.interp(at_ns, *(rows[field].astype(float) for field in ("time", name))) for rows in found], axis=0
        )

    faults = over_time("minor_faults")
    steps = np.diff(at_ns, prepend=at_ns[0])
    rate = np.divide(np.diff(faults, prepend=faults[0]), steps / 1e9, out=np.zeros(len(at_ns)), where=steps > 0)
    return MemorySeries(one.name, at_ns, over_time("resident"), over_time("live"), over_time("blocks"), rate)


def figures(one: AllocatorFigures, at_ns: np.ndarray) -> MemoryFigures | None:
    found = series(one, at_ns)
    if found is None:
        return None
    top = int(found.live.argmax())
    live, resident = float(found.live[top]), float(found.resident[top])
    overhead = max(resident / live - 1, 0.0) if live > 0 else 0.0
    later = found.resident[top:] - found.live[top:] * (1 + overhead)
    blocks = None if not found.blocks[top] else max(resident - live, 0.0) / found.blocks[top]
    rounding = middle(one.runs.runs, _rounding)
    rest = None if blocks is None or rounding is None else max(blocks - rounding, 0.0)
    faults, seconds = _middle(one, "minor_faults"), _middle(one, "wall_ns")
    return MemoryFigures(
        _middle(one, "peak_resident_bytes"),
        live,
        resident,
        overhead,
        blocks,
        rounding,
        rest,
        max(float(later.max()), 0.0),
        _unload(found),
        _middle(one, "teardown_resident_bytes"),
        faults / seconds * 1e9 if faults is not None and seconds else None,
    )


def pareto(figures_of: Sequence[AllocatorFigures]) -> list[ParetoPoint]:
    """p99.9 of malloc with its touch (attributed where causes are known, else as-run) against peak resident memory."""
    points = []
    view = View.ATTRIBUTED if all(one.looked_into for one in figures_of) else View.AS_RUN
    for one in figures_of:
        peak, tail = _middle(one, "peak_resident_bytes"), one.whole(view, Operation.MALLOC).percentile(P999)
        if peak is not None and tail is not None:
            low, high = one.together.ends(one.figure(view, Operation.MALLOC, P999)) or (tail.value, tail.value)
            least = one.step_ns / 2
            points.append((one, peak, max(tail.value, least), (max(low, least), max(high, least))))
    rivals = [(peak, tail) for _, peak, tail, _ in points]
    beaten = [
        any(other <= peak and slower <= tail and (other, slower) != (peak, tail) for other, slower in rivals)
        for peak, tail in rivals
    ]
    return [ParetoPoint(one.name, *found, not lost) for (one, *found), lost in zip(points, beaten, strict=True)]


def _unload(found: MemorySeries) -> Unload | None:
    """From the peak before it to the trough: the pair of moments that live bytes fall most between."""
    falls = np.maximum.accumulate(found.live) - found.live
    end = int(falls.argmax())
    if falls[end] < _UNLOAD * max(float(found.live.max()), 1.0):
        return None
    begin = int(found.live[: end + 1].argmax())
    settled = int(np.searchsorted(found.times_ns, found.times_ns[end] + _SETTLES_NS, side="right")) - 1
    least = float(found.resident[end : settled + 1].min())
    return Unload(
        float(found.times_ns[begin]),
        float(found.times_ns[end]),
        float(falls[end]),
        max(float(found.resident[begin]) - least, 0.0),
    )


def _rounding(facts: RunFacts) -> float | None:
    live = facts.live_at_stop
    return live.rounding_bytes / live.blocks if live and live.blocks else None


def _rows(run: Run) -> np.ndarray | None:
    path = run.folder / "memory.npy"
    rows = samples.memory(path) if path.is_file() else ()
    return rows if len(rows) else None


def _middle(one: AllocatorFigures, name: str) -> float | None:
    return middle(one.runs.runs, attrgetter(name))
