"""What the page knows besides single events: every exact figure, computed by the analysis and only shown here."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from blockyard.analysis import causes, fidelity, figures, samples, tiles
from blockyard.analysis.distribution import SATURATED
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.latency import P50, P99, P999, P9999, P99999, Operation, Part, View
from blockyard.analysis.sections import Section
from blockyard.report import comparison
from blockyard.report.header import Header
from blockyard.report.page import frames
from blockyard.report.page.pack import LATENCY_STEPS

OPERATIONS = (Operation.MALLOC, Operation.FREE)
_TABLE = (P50, P99, P999, P9999, P99999)
_LIMITS_NS = (1_000, 10_000, 100_000)
_BODY_STEPS, _NINE_STEPS, _NINES = 36, 16, 6
_MEMORY_POINTS = 800


def shares() -> list[tuple[int, int]]:
    """Where the percentile curves have points, as exact fractions: evenly up to p90, then evenly within each nine."""
    found = [(place, _BODY_STEPS * 10 // 9) for place in range(_BODY_STEPS + 1)]
    for nine in range(1, _NINES):
        for step in range(1, _NINE_STEPS + 1):
            whole = 10 ** (nine + 6)
            beyond = whole // 10**nine if step == 0 else round(whole * 10 ** -(nine + step / _NINE_STEPS))
            found.append((whole - beyond, whole))
    return found


def section(found: Section, members: Sequence[AllocatorFigures], header: Header,
            views: Sequence[View]) -> dict[str, Any]:
    """All that is known of a section but its events."""
    bases = list(dict.fromkeys(one.runs.base for one in members if not one.runs.is_null))
    return {
        "title": found.title, "journal": found.journal, "header": header.lines(),
        "warnings": fidelity.sentences(found), "end_ns": end_ns(members),
        "touched": any(one.touched for one in members), "views": [view.value for view in views],
        "frames": frames.facts(found, members), "threads": _thread_names(found),
        "allocators": [_allocator(one, bases, views) for one in members]}


def end_ns(members: Sequence[AllocatorFigures]) -> float:
    """When the last event of any repeat started, a little later: the right edge of every time axis."""
    last = 0.0
    for one in members:
        for run in figures.open_rows(one.runs, gross=False):
            if len(run.rows):
                last = max(last, float(run.rows["start"][-4096:].max()))
    return last * 1.0005 if last else 1e9


def constants() -> dict[str, Any]:
    """What the page's own arithmetic needs to agree with the tiles."""
    return {"per_octave": tiles.PER_OCTAVE, "bins": tiles.BINS, "latency_steps": LATENCY_STEPS,
            "histogram_error": tiles.ERROR, "slowest": figures.SLOWEST, "machine_causes": causes.MACHINE,
            "shares": shares(),
            "limits_ns": _LIMITS_NS, "percentiles": [[one.label, one.numerator, one.denominator] for one in _TABLE]}


def _allocator(one: AllocatorFigures, bases: list[str], views: Sequence[View]) -> dict[str, Any]:
    runs = one.runs
    peaks = [run.facts.get("peak_resident_bytes") for run in runs.runs]
    return {
        "name": runs.name, "label": comparison.short_name(one), "base": runs.base, "variant": runs.variant,
        "version": runs.version, "null": runs.is_null, "place": -1 if runs.is_null else bases.index(runs.base),
        "repeats": len(runs.runs), "step_ns": one.step_ns, "measured_ns": one.measured_ns,
        "peak_bytes": _median([peak for peak in peaks if isinstance(peak, int)]),
        "figures": {operation.value: {view.value: _figures(one, view, operation) for view in views}
                    for operation in OPERATIONS},
        "verdicts": {view.value: frames.verdicts(one, view) for view in views},
        "memory": _memory(one)}


def _figures(one: AllocatorFigures, view: View, operation: Operation) -> dict[str, Any] | None:
    found = one.whole(view, operation)
    if not found.samples:
        return None
    ranks = [max(1, -(-found.samples * numerator // denominator)) for numerator, denominator in shares()]
    supported = [found.samples * (denominator - numerator) >= 10 * denominator for numerator, denominator in shares()]
    ticks = found.ticks[np.searchsorted(np.cumsum(found.counts, dtype=np.uint64), np.array(ranks, np.uint64))]
    curve = [_digits(float(tick) / found.ticks_per_ns) if known else None
             for tick, known in zip(ticks, supported, strict=True)]
    named = [found.percentile(percentile) for percentile in _TABLE]
    ends = one.intervals(view, operation, Part.CALL if operation is Operation.FREE else Part.BOTH)
    intervals = [(value := ends.get(percentile.label)) and [_digits(value.low.value), _digits(value.high.value)]
                 for percentile in _TABLE]
    return {"samples": found.samples, "intervals": intervals, "best": found.best.value,
            "named": [None if value is None else _digits(value.value) for value in named],
            "worst": found.worst.value, "at_least": bool(found.ticks[-1] == SATURATED),
            "above": [found.above(limit) for limit in _LIMITS_NS], "curve": curve}


def _memory(one: AllocatorFigures) -> dict[str, list[float]] | None:
    """Resident and live bytes through the run whose peak is the median."""
    ordered = sorted(one.runs.runs, key=lambda run: run.facts.get("peak_resident_bytes") or 0)
    path = ordered[len(ordered) // 2].folder / "memory.npy"
    if not path.is_file():
        return None
    rows = samples.memory(path)
    if not len(rows):
        return None
    kept = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _MEMORY_POINTS)).round().astype(np.int64))
    return {"time_s": [round(float(time) / 1e9, 4) for time in rows["time"][kept]],
            "resident": [int(value) for value in rows["resident"][kept]],
            "live": [int(value) for value in rows["live"][kept]]}


def _thread_names(found: Section) -> list[str]:
    names = found.facts.get("thread_names")
    return [str(name) for name in names] if isinstance(names, list) else []


def _median(values: list[int]) -> int | None:
    return sorted(values)[len(values) // 2] if values else None


def _digits(value: float, digits: int = 5) -> float:
    """Enough for any axis and table, at half the room."""
    return 0.0 if value == 0 else round(value, digits - 1 - math.floor(math.log10(abs(value))))
