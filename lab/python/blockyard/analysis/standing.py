"""How the allocators of a section stand against the one that the program was recorded with: what changing it changes.

Better and worse are said as `blockyard compare` says them: beyond the noise of the repeats, in the view without the
machine's interruptions and in the inherent one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from statistics import median

import numpy as np

from blockyard.analysis import noise
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.latency import P50, P999, Operation, View
from blockyard.analysis.noise import Difference, Figure, Spread, Verdict

ASSUMED = "glibc"
"""What a program was recorded with, as long as nobody says otherwise: journals do not keep it."""
_PAGE = 4096.0


class Measure(Enum):
    """What a program pays: a malloc with its first touch, a frame's time in the allocator, resident memory."""

    MEDIAN = "malloc p50"
    TAIL = "malloc p99.9"
    FRAME = "worst frame"
    MEMORY = "peak memory"


@dataclass(frozen=True)
class Standing:
    """One allocator: each measure that is known of it, in ns or bytes, and how that differs from the program's own."""

    allocator: AllocatorFigures
    values: Mapping[Measure, float]
    differences: Mapping[Measure, Difference]

    def those(self, verdict: Verdict) -> list[Measure]:
        return [measure for measure, found in self.differences.items() if found.verdict is verdict]


def trusted(members: Sequence[AllocatorFigures]) -> View:
    """The view that a short answer keeps to: without the machine's interruptions, where these are known."""
    return View.ATTRIBUTED if all(one.looked_into for one in members) else View.AS_RUN


def of(
    members: Sequence[AllocatorFigures], own: AllocatorFigures | None, measured: Sequence[AllocatorFigures]
) -> list[Standing]:
    """In the order given, `null` left out. Without `own` nothing differs from anything. All that were `measured` tell
    how much repeats vary, and how many claims could be made: a claim holds whoever else is asked about."""
    competing = [one for one in members if not one.runs.is_null]
    if not competing:
        return []
    view = trusted(competing)
    found = {one.name: _figures(one, view) for one in (*competing, *measured) if not one.runs.is_null}
    if own is not None and own.name in found:
        _lend(found)
    base = found.get(own.name, {}) if own is not None else {}
    standings = []
    for one in competing:
        differences = {}
        if own is not None and one.name != own.name:
            confidence = own.together.confidence
            differences = {
                measure: _difference(base[measure], figures, confidence)
                for measure, figures in found[one.name].items()
                if measure in base
            }
        values = {measure: next(iter(figures.values())).value for measure, figures in found[one.name].items()}
        standings.append(Standing(one, values, differences))
    return standings


def shows(standings: Sequence[Standing]) -> dict[Measure, float]:
    """By measure the ratio of the middle allocator that these runs would probably have told from 1."""
    found = {}
    for measure in Measure:
        known = [one.differences[measure].shows for one in standings if measure in one.differences]
        if of := [ratio for ratio in known if ratio is not None]:
            found[measure] = median(of)
    return found


def _difference(base: Mapping[View, Figure], new: Mapping[View, Figure], confidence: float) -> Difference:
    """Of the first view, with what all views say together."""
    by_view = {view: noise.difference(base[view], new[view], confidence) for view in base if view in new}
    first = next(iter(by_view.values()))
    verdict, reason = noise.together(by_view)
    return replace(first, verdict=verdict, reason=reason)


def _lend(found: dict[str, dict[Measure, dict[View, Figure]]]) -> None:
    """Of frames and memory; percentiles come with what the others lend."""
    for measure in (Measure.FRAME, Measure.MEMORY):
        views = dict.fromkeys(view for figures in found.values() for view in figures.get(measure, ()))
        for view in views:
            mine = {name: figures[measure] for name, figures in found.items() if view in figures.get(measure, ())}
            spread = Spread.of([each[view] for each in mine.values()])
            for each in mine.values():
                each[view] = spread.lent(each[view])


def _figures(one: AllocatorFigures, view: View) -> dict[Measure, dict[View, Figure]]:
    """By measure and view, the one to be shown first."""
    views = (view, View.INHERENT)
    found: dict[Measure, dict[View, Figure | None]] = {
        measure: {each: one.figure(each, Operation.MALLOC, percentile) for each in views}
        for measure, percentile in ((Measure.MEDIAN, P50), (Measure.TAIL, P999))
    }
    found[Measure.FRAME] = {each: _worst_frame(one, each) for each in views}
    found[Measure.MEMORY] = {view: _peak(one)}
    return {
        measure: {each: figure for each, figure in by_view.items() if figure is not None}
        for measure, by_view in found.items()
        if all(figure is not None for figure in by_view.values())
    }


def _worst_frame(one: AllocatorFigures, view: View) -> Figure | None:
    """Of the frames that are judged: the median over the repeats of each one's worst."""
    values = one.judged_frames(view)
    if values is None or not values.size:
        return None
    by_repeat = np.max(values, axis=1).tolist()
    if view is View.INHERENT:
        return Figure(by_repeat[0], one.step_ns, len(one.runs.runs))
    return Figure.of_each(by_repeat, one.step_ns)


def _peak(one: AllocatorFigures) -> Figure | None:
    known = [peak for run in one.runs.runs if (peak := run.facts.peak_resident_bytes)]
    return Figure.of_each(known, _PAGE) if known else None
