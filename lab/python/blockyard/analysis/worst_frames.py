"""The worst frames of an allocator, and what filled them."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import partial

import numpy as np

from blockyard.analysis.figures import AllocatorFigures, open_rows
from blockyard.analysis.passes import ALL, FREE, Rows


@dataclass(frozen=True)
class WorstFrame:
    """One frame: `allocator_ns` in the repeat in which it was slowest, `median_ns` its middle over all repeats. Its
    calls are those of the timed repeat in which they took longest."""

    frame: int
    start_ns: float
    repeat: int
    allocator_ns: float
    median_ns: float
    events: int
    slowest_ns: float
    slowest_event: int
    slowest_kind: int
    slowest_size: int
    slowest_cause: int
    mallocs_ns: float
    frees_ns: float


def of(one: AllocatorFigures, count: int) -> list[WorstFrame]:
    """Of the frames that are judged, each once, by its slowest repeat, the worst first; empty where there are none."""
    series = one.frames
    if series is None or not series.as_run_ns.size:
        return []
    most = series.as_run_ns.max(axis=0)
    if one.cuts.judged_phase is not None:
        most = np.where(one.cuts.frames_in(one.cuts.judged_phase), most, 0)
    order = np.argsort(-most, kind="stable")[:count]
    opened = open_rows(one.runs, gross=one.gross)
    return [
        one.once(("worst frame", frame), partial(_frame, one, opened, frame))
        for frame in order.tolist()
        if most[frame] > 0
    ]


def events_of(one: AllocatorFigures, found: WorstFrame) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of its events, and their times in ns in the timed repeat in which they took longest."""
    repeat = next(place for place, run in enumerate(one.runs.runs) if run.repeat == found.repeat)
    rows, ns = _rows(one, open_rows(one.runs, gross=one.gross)[repeat], found.frame)
    return rows["event"], ns


def _rows(one: AllocatorFigures, run: Rows, frame: int) -> tuple[np.ndarray, np.ndarray]:
    """The frame's rows on the judged thread, and their times in ns."""
    series = one.frames
    assert series is not None
    begin, end = (bisect_left(run.rows["event"], edge) for edge in series.cut.edges[frame : frame + 2].tolist())
    rows = np.array(run.rows[begin:end])
    if series.cut.thread != ALL:
        rows = rows[rows["thread"] == series.cut.thread]
    return rows, run.ticks(rows) / one.runs.ticks_per_ns


def _frame(one: AllocatorFigures, opened: list[Rows], frame: int) -> WorstFrame:
    series = one.frames
    assert series is not None
    place, (rows, ns) = max(
        enumerate(_rows(one, run, frame) for run in opened), key=lambda each: float(each[1][1].sum())
    )
    slowest = int(ns.argmax())
    frees = rows["kind"] == FREE
    allocator_ns = float(series.as_run_ns[:, frame].max())
    in_frees = float(ns[frees].sum()) * (allocator_ns / float(ns.sum()))
    return WorstFrame(
        frame,
        float(series.cut.starts_ns[frame]),
        one.runs.runs[place].repeat,
        allocator_ns,
        float(series.median_ns[frame]),
        len(rows),
        float(ns[slowest]),
        *(int(rows[name][slowest]) for name in ("event", "kind", "size", "cause")),
        allocator_ns - in_frees,
        in_frees,
    )
