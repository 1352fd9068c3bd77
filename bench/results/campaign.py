"""A campaign's folder as the small file that docs/results is written from: docs/results/data/standard.json.

A latency is `[all repeats together, the first repeat, the second, ...]` in ns; an inherent one has no repeats. What is
not known is null.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from data import commit, described

from blockyard.analysis import causes, cuts, fidelity, figures, frames, memory, noise, sections
from blockyard.analysis.cuts import Cuts
from blockyard.analysis.distribution import Distribution
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.frames import FrameCut
from blockyard.analysis.latency import P50, P99, P999, P9999, Operation, Part, Percentile, View
from blockyard.analysis.phases import PLAY
from blockyard.analysis.sections import Results, Section
from blockyard.errors import UserError

PERCENTILES = (P50, Percentile("p90", 90, 100), P99, P999, P9999)
VIEWS = (View.INHERENT, View.ATTRIBUTED)
OPERATIONS = (Operation.MALLOC, Operation.FREE)
FRAME_HZ = (60, 144, 240)
_UP_TO_1_MIB = range(4)
_ABOVE_1_MIB = 4


def collect(folder: Path) -> dict[str, Any]:
    """Raises UserError for a folder that is no finished campaign."""
    results = sections.read(folder)
    if results.unfinished:
        raise UserError(
            f"{folder} has {results.unfinished} runs to go of {results.planned}: 'blockyard replay --resume -o "
            f"{folder}' finishes it"
        )
    if results.repeats < noise.LEAST_REPEATS:
        raise UserError(
            f"{folder} has {results.repeats} repeats; nothing is claimed of fewer than {noise.LEAST_REPEATS}"
        )
    if len({(section.pace, section.touch) for section in results.sections}) != 1:
        raise UserError(f"{folder} has not one pace and one touch, as a campaign for docs/results has")
    measured = [
        (section, cut := cuts.of(section), _measure(section, cut)) for section in results.sections if section.measured
    ]
    if not measured:
        raise UserError(f"{folder} has no run that succeeded")
    step_ns = max(one.step_ns for _, _, members in measured for one in members)
    return {**_head(results, step_ns), "journals": [_journal(*one) for one in measured]}


def _measure(section: Section, cut: Cuts) -> list[AllocatorFigures]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda runs: figures.measure(runs, cut, threads=1), section.measured))


def _head(results: Results, step_ns: float) -> dict[str, Any]:
    runs = [run for section in results.sections for one in section.measured for run in one.runs]
    section = results.sections[0]
    rate = runs[0].number("ticks_per_ns")
    return {
        "kind": "campaign",
        "name": results.name,
        "measured_at": results.created_at[:10],
        "commit": commit(),
        "machine": described(msgspec.to_builtins(results.machine)),
        "clock": {
            "ticks_per_ns": round(rate, 3),
            "step_ns": _short(step_ns),
            "floor_ns": _short(min(run.number("floor_call_ticks") / run.number("ticks_per_ns") for run in runs)),
        },
        "pace": section.pace,
        "touch": section.touch,
        "repeats": results.repeats,
        "runs": len(runs),
        "failed_runs": sum(len(one.failures) for section in results.sections for one in section.allocators),
    }


def _journal(section: Section, cut: Cuts, measured: list[AllocatorFigures]) -> dict[str, Any]:
    at_ns = memory.times(measured)
    facts = section.facts
    return {
        "name": section.journal,
        "from_s": facts.from_s,
        "to_s": facts.to_s,
        "events": facts.measured_events,
        "judged_frames": _judged(cut),
        "allocators": [_allocator(one, section, cut, memory.figures(one, at_ns)) for one in measured],
    }


def _judged(cut: Cuts) -> str | None:
    if not isinstance(cut.frames, FrameCut):
        return None
    return PLAY if PLAY in cut.phases.names and len(cut.phases.names) > 1 else "all"


def _allocator(one: AllocatorFigures, section: Section, cut: Cuts, kept: memory.MemoryFigures | None) -> dict[str, Any]:
    views = [view for view in VIEWS if view is not View.ATTRIBUTED or one.looked_into]
    return {
        "name": one.runs.base,
        "variant": "prefaulted" if one.runs.variant in ("prefaulted", "favoured") else one.runs.variant,
        "version": one.runs.version,
        "locked": one.runs.needs_lock,
        "poor_runs": sum(fidelity.grade(run, section).grade is fidelity.Grade.POOR for run in one.runs.runs),
        "latency": {view.value: {which.value: _latencies(one, view, which) for which in OPERATIONS} for view in views},
        "frames": _frames(one, cut, views[-1]),
        "above_us": {str(us): _short(one.rate_above(us * 1000, views[-1])) for us in (1, 10, 100)}
        if View.ATTRIBUTED in views
        else None,
        "slowest_malloc_causes": _causes(one),
        "memory": None if kept is None else {"peak": kept.peak, "peak_live": kept.peak_live, "teardown": kept.teardown},
        "time_ns": {
            "wall": _middle(run.number("wall_ns") for run in one.runs.runs),
            "calls": one.runs.spent_ns,
            "own_threads": sections.middle(one.runs.runs, lambda facts: facts.background.cpu_ns),
            "calls_and_own_threads": one.runs.spent_with_background_ns,
        },
        "own_thread_shares": [
            _short(run.facts.background.cpu_ns / run.number("wall_ns"))
            for run in one.runs.runs
            if run.facts.background.threads
        ],
        "ready_misses": _ready_misses(one),
    }


def _latencies(one: AllocatorFigures, view: View, operation: Operation) -> dict[str, Any]:
    part = Part.CALL if operation is Operation.FREE else Part.BOTH
    repeats = [] if view is View.INHERENT or len(one.runs.runs) < 2 else range(len(one.runs.runs))

    def of(take: Callable[[Distribution], float | None], classes: Iterable[int] | None = None) -> list[Any] | None:
        def whole(repeat: int | None) -> Distribution:
            if classes is None:
                return one.distribution(view, operation, part, repeat=repeat)
            return Distribution.joined(one.distribution(view, operation, part, place, repeat) for place in classes)

        value = take(whole(None))
        each = [take(whole(repeat)) for repeat in repeats]
        return None if value is None else [_short(number) for number in (value, *([] if None in each else each))]

    def at(percentile: Percentile) -> Callable[[Distribution], float | None]:
        def take(found: Distribution) -> float | None:
            known = found.percentile(percentile)
            return None if known is None else known.value

        return take

    def worst(found: Distribution) -> float | None:
        return None if found.samples == 0 or found.worst is None else found.worst.value

    return {
        **{percentile.label: of(at(percentile)) for percentile in PERCENTILES},
        "worst": of(worst),
        "worst up to 1 MiB": of(worst, _UP_TO_1_MIB),
        "worst above 1 MiB": of(worst, [_ABOVE_1_MIB]),
    }


def _frames(one: AllocatorFigures, cut: Cuts, view: View) -> dict[str, Any] | None:
    values = one.frames.of(view) if one.frames else None
    if values is None or not isinstance(cut.frames, FrameCut):
        return None
    if _judged(cut) == PLAY:
        values = values[:, cut.frames_in(PLAY)]
    if not values.size:
        return None
    found = {hz: frames.verdict(values, 1e9 / hz) for hz in FRAME_HZ}
    return {
        str(hz): {"p99": _short(one.shares["p99"]), "worst": _short(one.worst), "over_5_percent": one.over[0.05]}
        for hz, one in found.items()
    }


def _causes(one: AllocatorFigures) -> dict[str, float] | None:
    """Shares of the time of the slowest thousandth of mallocs, as-run."""
    edge = one.whole(View.AS_RUN, Operation.MALLOC).percentile(P999)
    if edge is None or not one.looked_into:
        return None
    parts = causes.breakdown(one, Operation.MALLOC, edge.value)
    whole = sum(part.ns for part in parts.values())
    return {name: _short(part.ns / whole) for name, part in parts.items()} if whole else None


def _ready_misses(one: AllocatorFigures) -> list[int] | None:
    """By run, while the clock ran."""
    counted = [run.facts.counters or {} for run in one.runs.runs]
    names = [name for name in counted[0] if name.startswith("ready_misses")]
    return [sum(told[name].during for name in names) for told in counted] if names else None


def _middle(values: Iterable[float]) -> float | None:
    known = list(values)
    return median(known) if known else None


def _short(value: float | None) -> float | None:
    """Four digits: what a page shows has three."""
    return None if value is None else float(f"{value:.4g}")
