"""The worst frames of an allocator, and what filled them."""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from blockyard.analysis.distribution import SATURATED
from blockyard.analysis.figures import AllocatorFigures, open_rows
from blockyard.analysis.passes import ALL, Rows

KINDS = ("malloc", "calloc", "aligned", "free", "realloc")


@dataclass(frozen=True)
class WorstFrame:
    """One frame in the repeat in which it was slowest; `median_ns` is its middle over all repeats."""

    frame: int
    start_ns: float
    repeat: int
    allocator_ns: float
    median_ns: float
    events: int
    slowest_ns: float
    slowest_event: int
    slowest: str
    """`malloc 64 KiB`, `free 24 B`: for people."""
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
    return [_frame(one, opened, int(frame)) for frame in order if most[frame] > 0]


def _frame(one: AllocatorFigures, opened: list[Rows], frame: int) -> WorstFrame:
    series = one.frames
    assert series is not None
    place = int(series.as_run_ns[:, frame].argmax())
    run = opened[place]
    begin, end = (bisect_left(run.rows["event"], edge) for edge in series.cut.edges[frame : frame + 2].tolist())
    rows = np.array(run.rows[begin:end])
    if series.cut.thread != ALL:
        rows = rows[rows["thread"] == series.cut.thread]
    ns = (
        (_net(rows["call"], run.floor_call) + np.where(rows["touch"] > 0, _net(rows["touch"], run.floor_touch), 0))
        * run.scale
        / one.runs.ticks_per_ns
    )
    slowest = int(ns.argmax())
    frees = rows["kind"] == 3
    size = int(rows["size"][slowest])
    return WorstFrame(
        frame,
        float(series.cut.starts_ns[frame]),
        one.runs.runs[place].repeat,
        float(series.as_run_ns[place, frame]),
        float(series.median_ns[frame]),
        len(rows),
        float(ns[slowest]),
        int(rows["event"][slowest]),
        f"{KINDS[rows['kind'][slowest]]} {_bytes(size)}",
        int(rows["cause"][slowest]),
        float(ns[~frees].sum()),
        float(ns[frees].sum()),
    )


def _net(ticks: np.ndarray, floor: int) -> np.ndarray:
    wide = ticks.astype(np.float64)
    return np.where(ticks == SATURATED, wide, np.maximum(wide - floor, 0))


def _bytes(count: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count} B"
