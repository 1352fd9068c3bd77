"""The events of a section for the page: tiles of all allocators, in no more room than the file may take."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from blockyard.analysis import figures, syscalls, tiles
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.frames import FrameCut
from blockyard.analysis.syscalls import Trace
from blockyard.analysis.tiles import Tiles
from blockyard.report.page.pack import packed, steps
from blockyard.report.page.stacks import Stacks

_ROOM_AN_ALLOCATOR, _ALLOCATORS = 750_000, 9
"""Bytes that histograms and events may take, compressed and before base64: the page of one section of nine allocators
or fewer stays below 10 MB. More allocators have more, several sections half each."""
_BYTES_A_CELL = 1.05
_BYTES_AN_EVENT, _BYTES_A_REPEAT = 7.0, 1.8
"""What they take once compressed, on the high side; the estimate decides how finely time is cut."""
_LEAST_COLUMNS = 256


@dataclass(frozen=True)
class _Cut:
    """One allocator's events, cut."""

    tiles: Tiles
    rows: np.ndarray
    complete_above: int


def room(allocators: int, crowd: int) -> int:
    """Bytes that a section's events may take, compressed. `crowd`: the sections of the page."""
    return _ROOM_AN_ALLOCATOR * max(allocators, _ALLOCATORS) // min(crowd, 2)


class Events:
    """The events of a section, cut as finely as fits into `most` bytes, compressed; then they are packed."""

    def __init__(self, members: Sequence[AllocatorFigures], end_ns: float, gross: bool, jobs: int, most: int) -> None:
        self._members, self._end_ns, self._gross, self._jobs = members, end_ns, gross, max(1, jobs)
        threads = 1 if jobs > 1 and len(members) > 1 else min(jobs, 2)
        with ThreadPoolExecutor(self._jobs) as pool:
            self._found = list(pool.map(lambda one: _cut(one, end_ns, gross, threads), members))
        self._factor, self.size = _factor(self._found, most)

    @property
    def columns(self) -> int:
        """How many stretches the time was cut into."""
        return tiles.COLUMNS // self._factor

    def packs(self, traces: Sequence[Trace | None], stacks: Stacks | None) -> list[str]:
        """That of each allocator."""
        with ThreadPoolExecutor(self._jobs) as pool:
            return list(pool.map(lambda place: self._pack(place, traces[place], stacks), range(len(self._members))))

    def _pack(self, place: int, trace: Trace | None, stacks: Stacks | None) -> str:
        one, found, factor, end_ns = self._members[place], self._found[place], self._factor, self._end_ns
        rate = one.runs.ticks_per_ns
        unit = max(100.0, end_ns / 2**31)
        columns: dict[str, np.ndarray] = {}
        for name, plane in zip(tiles.PLANES, found.tiles.planes, strict=True):
            cells = plane.joined(factor)
            columns[f"{name}.occupied"] = np.bincount(cells.columns, minlength=tiles.COLUMNS // factor).astype(
                np.uint16
            )
            first = np.diff(cells.columns, prepend=-1) > 0
            gaps = np.where(first, cells.bins, np.diff(cells.bins, prepend=0))
            columns[f"{name}.gap"] = gaps.astype(np.uint16)
            columns[f"{name}.count"] = cells.counts.astype(np.uint32)
        opened = figures.open_rows(one.runs, self._gross)
        first_run = opened[0].rows[found.rows]
        sizes, size = np.unique(first_run["size"], return_inverse=True)
        columns |= {
            "event": first_run["event"],
            "time": np.round(first_run["start"] / unit).astype(np.uint32),
            "kind": first_run["kind"],
            "thread": first_run["thread"],
            "frame": _frames(one, first_run),
            "size": size.astype(np.uint32),
        }
        for repeat, run in enumerate(opened):
            columns[f"latency.{repeat}"] = steps(found.tiles.latencies[:, repeat] / rate)
            columns[f"cause.{repeat}"] = run.rows["cause"][found.rows]
        deltas = {"event", "time", "frame"}
        if stacks is not None:
            columns |= stacks.of_events(first_run["event"])
            columns |= stacks.columns[place]
            deltas |= {name for name in columns if name.endswith(".cell")}
        phrases, columns["calls"] = _calls(trace, first_run["event"])
        facts = {
            "time_unit_ns": unit,
            "calls": phrases,
            "sizes": [int(each) for each in sizes],
            "repeats": len(opened),
            "complete_above_ns": found.complete_above / rate,
        }
        return packed(facts, columns, frozenset(deltas), noisy=True)


def _cut(one: AllocatorFigures, end_ns: float, gross: bool, threads: int) -> _Cut:
    slow = one.digest.slowest()
    rows = np.sort(slow["row"])
    opened = figures.open_rows(one.runs, gross)
    complete_above = int(slow["ticks"].min()) if len(slow) and len(slow) < len(opened[0].rows) else 0
    return _Cut(tiles.tile(opened, rows, end_ns, one.runs.ticks_per_ns, threads), rows, complete_above)


def _factor(found: Sequence[_Cut], most: int) -> tuple[int, int]:
    """How many neighbouring stretches to join so that all fits, and the bytes that it then takes."""
    slow = sum(len(one.rows) * (_BYTES_AN_EVENT + _BYTES_A_REPEAT * one.tiles.latencies.shape[1]) for one in found)
    factor = 1
    while True:
        cells = sum(plane.occupied(factor) for one in found for plane in one.tiles.planes)
        size = int(slow + cells * _BYTES_A_CELL)
        if size <= most or factor >= tiles.COLUMNS // _LEAST_COLUMNS:
            return factor, size
        factor *= 2


def _frames(one: AllocatorFigures, rows: np.ndarray) -> np.ndarray:
    """In which of the judged frames, from 1, each event came; a clock may have cut them. 0 is before all."""
    cut = one.cuts.frames
    if not isinstance(cut, FrameCut):
        return rows["frame"]
    return np.searchsorted(cut.edges, rows["event"], side="right").astype(np.uint32)


def _calls(trace: Trace | None, events: np.ndarray) -> tuple[list[str], np.ndarray]:
    """What the traced run saw these events ask of the system: the different phrases, and which one each event has."""
    phrases, column = {"": 0}, np.zeros(len(events), np.uint16)
    if trace is not None:
        for place in np.flatnonzero(np.isin(events, trace.rows["event"])):
            phrase = syscalls.phrase(trace.of_event(int(events[place])))
            column[place] = phrases.setdefault(phrase, len(phrases)) if len(phrases) < 1 << 16 else 0
    return list(phrases), column
