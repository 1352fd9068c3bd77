"""What the page knows beyond single events: every exact figure, computed by the analysis and only shown here."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from blockyard.analysis import causes, fidelity, figures, memory, samples, tiles, worst_frames
from blockyard.analysis.distribution import SATURATED
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.frames import DEFAULT_FPS, FrameCut
from blockyard.analysis.latency import SAMPLES_BEYOND, WITH_INTERVAL, Operation, Percentile, View, paid
from blockyard.analysis.sections import Section, middle
from blockyard.report import cause_tables, frame_tables, registry
from blockyard.report.lineup import Lineup, MeasuredSection
from blockyard.report.page.pack import LATENCY_STEPS, packed, steps
from blockyard.report.page.stacks import SUM_STEPS
from blockyard.report.table import Table, raw

OPERATIONS = (Operation.MALLOC, Operation.FREE)
_LIMITS_NS = figures.RATE_LIMITS_NS
_BODY_STEPS, _NINE_STEPS, _NINES = 36, 16, 6


def _points() -> list[Percentile]:
    """Where the percentile curves have points: evenly up to p90, then evenly within each nine."""
    found = [Percentile("", place, _BODY_STEPS * 10 // 9) for place in range(_BODY_STEPS + 1)]
    for nine in range(1, _NINES):
        for step in range(1, _NINE_STEPS + 1):
            whole = 10 ** (nine + 6)
            found.append(Percentile("", whole - round(whole * 10 ** -(nine + step / _NINE_STEPS)), whole))
    return found


def section(of: MeasuredSection, verdict: Sequence[str]) -> dict[str, Any]:
    """All that is known of a section but its events."""
    members = of.figures
    lineup, views = Lineup(of, "", members, members), of.all_views
    at_ns = memory.times(lineup.competing)
    curves = {one.name: curve for one in lineup.competing if (curve := memory.series(one, at_ns)) is not None}
    live = next((curve.live for curve in curves.values()), np.zeros(0))
    bases = list(dict.fromkeys(one.runs.base for one in lineup.competing))
    return {
        "title": of.section.title,
        "journal": of.section.journal,
        "verdict": list(verdict),
        "header": of.header.lines(),
        "warnings": fidelity.sentences(of.section),
        "end_ns": end_ns(members),
        "touched": lineup.touched,
        "views": [view.value for view in views],
        "looked": cause_tables.looked(lineup) if lineup.looked_into else "",
        "frames": _frame_facts(of.section, members),
        "threads": of.section.thread_names,
        "tables": _tables(lineup),
        "memory": {"time_s": [round(float(ns) / 1e9, 4) for ns in at_ns], "live": [int(value) for value in live]},
        "allocators": [_allocator(of.section, one, bases, views, curves.get(one.name)) for one in members],
    }


def end_ns(members: Sequence[AllocatorFigures]) -> float:
    """When the last event of any repeat started, a little later: the right edge of every time axis."""
    return max(run.last_start for one in members for run in figures.open_rows(one.runs, gross=False)) * 1.0005 or 1e9


def constants() -> dict[str, Any]:
    """What the page's own arithmetic needs to agree with the tiles, and its words with the tables."""
    masks = {
        causes.INTERRUPTED: causes.MACHINE,
        causes.WAITED: samples.SLEPT,
        causes.FAULTED: samples.FAULT_CALL | samples.FAULT_TOUCH | samples.MAJOR_FAULT,
        causes.OWN: samples.LOOKED,
        causes.UNKNOWN: 0,
    }
    return {
        "per_octave": tiles.PER_OCTAVE,
        "bins": tiles.BINS,
        "latency_steps": LATENCY_STEPS,
        "sum_steps": SUM_STEPS,
        "histogram_error": tiles.ERROR,
        "slowest": figures.SLOWEST,
        "machine_causes": causes.MACHINE,
        "cause_classes": [[name, mask] for name, mask in masks.items()],
        "cause_words": [causes.words(cause) for cause in range(256)],
        "beyond": SAMPLES_BEYOND,
        "shares": [[one.numerator, one.denominator] for one in _points()],
        "limits_ns": _LIMITS_NS,
        "percentiles": [[one.label, one.numerator, one.denominator] for one in WITH_INTERVAL],
    }


def _allocator(
    found: Section, one: AllocatorFigures, bases: list[str], views: Sequence[View], curve: memory.MemorySeries | None
) -> dict[str, Any]:
    runs = one.runs
    return {
        "name": runs.name,
        "label": f"{runs.name}*" if runs.needs_lock else runs.name,
        "base": runs.base,
        "variant": runs.variant,
        "version": runs.version,
        "null": runs.is_null,
        "place": -1 if runs.is_null else bases.index(runs.base),
        "repeats": len(runs.runs),
        "step_ns": one.step_ns,
        "measured_ns": one.measured_ns,
        "total_ns": None if runs.is_null or runs.totals is None else round(runs.totals.all.with_touch_ns),
        "grade": fidelity.worst(runs, found).grade.word,
        "peak_bytes": None if runs.is_null else middle(runs.runs, lambda facts: facts.peak_resident_bytes) or None,
        "figures": {
            operation.value: {view.value: _figures(one, view, operation) for view in views} for operation in OPERATIONS
        },
        "worst_frames": _worst_frames(one),
        "resident": None if curve is None else [int(value) for value in curve.resident],
    }


def _figures(one: AllocatorFigures, view: View, operation: Operation) -> dict[str, Any] | None:
    found = one.whole(view, operation)
    if not found.samples:
        return None
    curve = [
        _digits(found.at_rank(point.rank(found.samples)) / found.ticks_per_ns)
        if point.supported(found.samples)
        else None
        for point in _points()
    ]
    named = [found.percentile(percentile) for percentile in WITH_INTERVAL]
    known = one.known(view, operation, paid(operation))
    ends = [one.together.ends(known.get(percentile.label)) for percentile in WITH_INTERVAL]
    return {
        "samples": found.samples,
        "intervals": [each and list(map(_digits, each)) for each in ends],
        "best": found.best.value,
        "named": [None if value is None else _digits(value.value) for value in named],
        "worst": found.worst.value,
        "at_least": bool(found.ticks[-1] == SATURATED),
        "above": [found.above(limit) for limit in _LIMITS_NS],
        "curve": curve,
    }


def _digits(value: float, digits: int = 5) -> float:
    """Enough for any axis and table, in half the bytes."""
    return 0.0 if value == 0 else round(value, digits - 1 - math.floor(math.log10(abs(value))))


MOST_POINTS = 12_000
"""Of more frames than that, each point of the page is the worst of a few."""
_WORST_LISTED = 5


def _frame_facts(section: Section, members: Sequence[AllocatorFigures]) -> dict[str, Any]:
    """Where the frames come from, and the phases of the run."""
    cuts = members[0].cuts
    known = isinstance(cuts.frames, FrameCut)
    return {
        "words": frame_tables.words(section, cuts),
        "known": known,
        "group": _group(cuts.frames.frames) if known else 1,
        "rate_hz": cuts.frames.rate_hz if known else DEFAULT_FPS,
        "phases": [
            {"name": phase.name, "begin_s": phase.begin_ns / 1e9, "end_s": phase.end_ns / 1e9}
            for phase in cuts.phases.phases
        ]
        if len(cuts.phases.phases) > 1
        else [],
    }


def _worst_frames(one: AllocatorFigures) -> list[dict[str, float]]:
    """Where the worst frames lie, for going there."""
    cut = one.cuts.frames
    if not isinstance(cut, FrameCut):
        return []
    ends = np.append(cut.starts_ns[1:], one.cuts.line.duration_ns)
    return [
        {
            "begin_s": frame.start_ns / 1e9,
            "end_s": max(float(ends[frame.frame]), frame.start_ns + 1e5) / 1e9,
            "ns": round(frame.allocator_ns),
        }
        for frame in worst_frames.of(one, _WORST_LISTED)
    ]


def frames(members: Sequence[AllocatorFigures], views: Sequence[View]) -> str:
    """Columns `start` (us) and ALLOCATOR/VIEW (latency steps): the median of the repeats, inherent its one value."""
    cut = members[0].cuts.frames
    columns: dict[str, np.ndarray] = {}
    if isinstance(cut, FrameCut) and cut.frames:
        group = _group(cut.frames)
        edges = np.arange(0, cut.frames, group)
        columns["start"] = np.round(cut.starts_ns[edges] / 1e3).astype(np.uint32)
        for one in members:
            for view in views:
                values = one.frames.of(view) if one.frames else None
                if values is not None:
                    columns[f"{one.name}/{view.value}"] = steps(np.maximum.reduceat(np.median(values, axis=0), edges))
    return packed({}, columns, frozenset({"start"}) & columns.keys())


def _group(frame_count: int) -> int:
    return -(-frame_count // MOST_POINTS) or 1


def _tables(lineup: Lineup) -> list[dict[str, Any]]:
    """The report's, by view and allocator and with units, so that one renderer sorts and words them all. The page shows
    one at a time, in the order of this choice, beside that of latencies, which it computes itself for any stretch. What
    the runs do not have is left out."""
    found: dict[str, dict[str, Any]] = {}
    for view, table in registry.of_page(lineup):
        _add_rows(found, table, view)
    return list(found.values())


def _add_rows(found: dict[str, dict[str, Any]], table: Table, view: str) -> None:
    """The rows of one view, beside those of the others: of each the allocator, then its cells."""
    made = found.setdefault(
        table.name,
        {
            "name": table.name,
            "words": " ".join(f"{note[0].upper()}{note[1:]}." for note in table.footnotes),
            "columns": [[column.plain, column.unit.value, column.marked] for column in table.columns],
            "rows": {},
        },
    )
    made["rows"][view] = [[row.key, *map(raw, row.cells)] for row in table.rows]
