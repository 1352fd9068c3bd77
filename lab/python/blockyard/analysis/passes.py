"""The native passes over sample rows (libblockyard-samples.so), by ctypes."""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from blockyard.analysis import samples_library
from blockyard.analysis.distribution import SATURATED
from blockyard.analysis.samples_library import F64, POINTER, SIZE, U32, U64, fields

AS_RUN, INHERENT, ATTRIBUTED = range(3)
MALLOC_CALL, MALLOC_TOUCH, MALLOC_BOTH, REALLOC_CALL, REALLOC_TOUCH, REALLOC_BOTH, FREE_CALL = range(7)
MALLOC_AS_RUN, FREE_AS_RUN, MALLOC_INHERENT, FREE_INHERENT, MALLOC_ATTRIBUTED, FREE_ATTRIBUTED = range(6)
PLANES = 6
METRICS, CLASSES, CAUSES = 7, 5, 256
ALL = 4294967295
"""Of `run` and `phase`: all together. Of a cut's `thread`: all threads."""

ROW = np.dtype(
    fields(
        ("<u4", "event"), ("u1", "kind cause"), ("<u2", "thread"), ("<u8", "size start"), ("<u4", "call touch frame")
    )
)
"""A row of samples.npy: 36 bytes packed."""
FREE, REALLOCATE = 3, 4
"""Of a row's kinds."""
MARK = np.dtype(fields(("<u8", "time size"), ("<u4", "ticks event run cause")))
SLOW = np.dtype(fields(("<u8", "row"), ("<u4", "ticks run")))

_FIRST_CAPACITY = 1 << 12
_LAST_ROWS = 4096
"""Rows are in the journal's order and threads overlap by microseconds: the latest start is among the last few."""


class _Run(ctypes.Structure):
    _fields_ = fields((POINTER, "rows"), (U32, "floor_call floor_touch"), (F64, "scale"))


class _Fault(ctypes.Structure):
    _fields_ = fields((U32, "what run"), (U64, "row"))


class Frame(ctypes.Structure):
    """The frame of a density picture: cells, times in ns, latencies in ticks; for each plane, where marks begin."""

    _fields_ = fields(
        (U32, "width height"),
        (F64, "begin_ns end_ns low_ticks high_ticks"),
        (U32, "step_ticks"),
        (U32 * PLANES, "marks_from"),
    )


class _Plane(ctypes.Structure):
    _fields_ = fields(
        (ctypes.POINTER(U32), "counts"), (ctypes.POINTER(U64), "sizes"), (POINTER, "marks"), (SIZE, "mark_count")
    )


class _Cut(ctypes.Structure):
    _fields_ = fields(
        (POINTER, "edges"), (SIZE, "edge_count"), (U32, "thread"), (POINTER, "events as_run attributed inherent")
    )


class _Grouping(ctypes.Structure):
    _fields_ = fields(
        *((POINTER, "group"), (SIZE, "group_count"), (POINTER, "frame"), (SIZE, "frame_count")),
        (POINTER, "as_run inherent attributed"),
    )


@dataclass(frozen=True)
class Rows:
    """One repeat's rows, and what turns its ticks into latencies of its group."""

    rows: np.ndarray
    floor_call: int
    floor_touch: int
    scale: float = 1.0

    @property
    def last_start(self) -> int:
        """When the last event began, in ns of the replay's clock; 0 without events."""
        return int(self.rows["start"][-_LAST_ROWS:].max(initial=0))

    def ticks(self, rows: np.ndarray) -> np.ndarray:
        """What some of these rows took without the floors, in the group's ticks: of an allocation with its touch."""
        touch = np.where(rows["touch"] > 0, _net(rows["touch"], self.floor_touch), 0)
        return (_net(rows["call"], self.floor_call) + touch) * self.scale


class BadRows(Exception):
    """Rows that no replay writes; `run` is an index into the repeats given."""

    def __init__(self, sentence: str, run: int) -> None:
        super().__init__(sentence)
        self.run = run


@dataclass(frozen=True)
class Bins:
    """One plane's cells, [row from below, column], and its slowest events one by one."""

    counts: np.ndarray
    mean_log2_size: np.ndarray
    marks: np.ndarray


@cache
def _library() -> ctypes.CDLL:
    runs = ctypes.POINTER(_Run)
    return samples_library.functions(
        [
            ("by_samples_digest_new", POINTER, [U32, U32, U32]),
            ("by_samples_digest_delete", None, [POINTER]),
            ("by_samples_digest_feed", _Fault, [POINTER, runs, U32, U64, U32]),
            ("by_samples_digest_copy", SIZE, [POINTER, U32, U32, U32, U32, U32, POINTER, POINTER, SIZE]),
            ("by_samples_digest_cause", SIZE, [POINTER, U32, U32, POINTER, POINTER, SIZE]),
            ("by_samples_digest_slowest", SIZE, [POINTER, POINTER, SIZE]),
            ("by_samples_frame_times", ctypes.c_int, [runs, U32, U64, ctypes.POINTER(_Cut), U32, U32]),
            ("by_samples_group_times", ctypes.c_int, [runs, U32, U64, ctypes.POINTER(_Grouping), POINTER, POINTER]),
            ("by_samples_bin", POINTER, [runs, U32, U64, ctypes.POINTER(Frame), U32]),
            ("by_samples_bins_delete", None, [POINTER]),
            ("by_samples_bins_plane", _Plane, [POINTER, U32]),
        ]
    )


def _net(ticks: np.ndarray, floor: int) -> np.ndarray:
    wide = ticks.astype(np.float64)
    return np.where(ticks == SATURATED, wide, np.maximum(wide - floor, 0))


def run_array(runs: Sequence[Rows]) -> ctypes.Array:
    for number, run in enumerate(runs):
        if len(run.rows) != len(runs[0].rows):
            raise BadRows("does not have as many rows as the first repeat", number)
        if run.rows.dtype != ROW or not run.rows.flags.c_contiguous:
            raise ValueError("rows of another layout")
    return (_Run * len(runs))(*[_Run(run.rows.ctypes.data, run.floor_call, run.floor_touch, run.scale) for run in runs])


def _fault_sentence(fault: _Fault) -> str:
    return {
        1: f"has an event of unknown kind in row {fault.row}",
        2: f"has event numbers that do not rise at row {fault.row}",
        3: f"has another event in row {fault.row} than the first repeat",
    }[fault.what]


class Digest:
    """All latencies of one allocator's repeats, floors taken off, in native memory: tables are copied out on request.

    May be read from any thread and after a fork.
    """

    def __init__(
        self, runs: Sequence[Rows], threads: int, slowest: int = 0, phases: Sequence[tuple[int, int]] = ((0, 0),)
    ) -> None:
        """One pass over all repeats of one allocator; the `slowest` events are kept one by one.

        `phases`: the row from which on each phase goes (the first from 0), and its number; a number may come again.
        """
        run_array(runs)  # refuses repeats of different lengths before they are sliced
        self._library = _library()
        self._handle = self._library.by_samples_digest_new(threads, slowest, max(number for _, number in phases) + 1)
        if not self._handle:
            raise MemoryError
        ends = [*(begin for begin, _ in phases[1:]), len(runs[0].rows)]
        for (begin, number), end in zip(phases, ends, strict=True):
            part = [replace(run, rows=run.rows[begin:end]) for run in runs]
            fault = self._library.by_samples_digest_feed(
                self._handle, run_array(part), len(part), len(part[0].rows), number
            )
            if fault.what == 4:
                raise MemoryError
            if fault.what:
                raise BadRows(_fault_sentence(fault), fault.run)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.by_samples_digest_delete(self._handle)

    def distribution(
        self,
        view: int,
        metrics: Sequence[int],
        size_classes: Sequence[int] = range(CLASSES),
        run: int = ALL,
        phase: int = ALL,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Distinct ticks, rising, and their counts, of these metrics and classes together; of all repeats and phases
        unless one is named."""
        bits = [sum(1 << place for place in places) for places in (metrics, size_classes)]
        copy = self._library.by_samples_digest_copy
        return _copied(lambda *to: copy(self._handle, view, *bits, run, phase, *to))

    def by_cause(self, operation: int, cause: int) -> tuple[np.ndarray, np.ndarray]:
        """The same of the events that have exactly this in their column `cause`. 0 malloc, 1 realloc, 2 free."""
        copy = self._library.by_samples_digest_cause
        return _copied(lambda *to: copy(self._handle, operation, cause, *to))

    def slowest(self) -> np.ndarray:
        """SLOW rows, the slowest event first, each once with its slowest repeat."""
        found = np.zeros(self._library.by_samples_digest_slowest(self._handle, None, 0), SLOW)
        self._library.by_samples_digest_slowest(self._handle, found.ctypes.data, len(found))
        return found


def _copied(copy: Callable[[int, int, int], int]) -> tuple[np.ndarray, np.ndarray]:
    capacity = _FIRST_CAPACITY
    while True:
        ticks, counts = np.empty(capacity, np.uint32), np.empty(capacity, np.uint64)
        found = copy(ticks.ctypes.data, counts.ctypes.data, capacity)
        if found == ctypes.c_size_t(-1).value:
            raise MemoryError
        if found <= capacity:
            return ticks[:found].copy(), counts[:found].copy()
        capacity = found


@dataclass(frozen=True)
class FrameTimes:
    """Ticks by frame; `as_run` and `attributed` are [run, frame]."""

    events: np.ndarray
    as_run: np.ndarray
    attributed: np.ndarray
    inherent: np.ndarray


def frame_times(runs: Sequence[Rows], cuts: Sequence[tuple[np.ndarray, int]], threads: int) -> list[FrameTimes]:
    """The latencies (of an allocation with its touch) summed over each frame of each cut, in one pass. A cut is the
    edges of its frames, by event number, and their thread: frame i has its events from edges[i] on and below
    edges[i + 1]."""
    edges = [np.ascontiguousarray(edge, np.uint32) for edge, _ in cuts]
    found = []
    native_cuts = (_Cut * max(len(cuts), 1))()
    for place, (edge, (_, thread)) in enumerate(zip(edges, cuts, strict=True)):
        frames = max(len(edge) - 1, 0)
        as_run, attributed = (np.zeros((len(runs), frames), np.uint64) for _ in range(2))
        of = FrameTimes(np.zeros(frames, np.uint32), as_run, attributed, np.zeros(frames, np.uint64))
        sums = [one.ctypes.data for one in (of.events, of.as_run, of.attributed, of.inherent)]
        native_cuts[place] = _Cut(edge.ctypes.data, len(edge), thread, *sums)
        found.append(of)
    if _library().by_samples_frame_times(
        run_array(runs), len(runs), len(runs[0].rows), native_cuts, len(cuts), threads
    ):
        raise MemoryError
    return found


@dataclass(frozen=True)
class Weights:
    """Of each row its frame (ALL: none), and what a tick counts in each: [run, frame], for inherent [frame]."""

    frame: np.ndarray
    as_run: np.ndarray
    inherent: np.ndarray
    attributed: np.ndarray


def group_times(
    runs: Sequence[Rows], group: np.ndarray, groups: int, weights: Weights | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """The latencies (of an allocation with its touch) summed by group, in ticks, all repeats together: [AS_RUN,
    INHERENT, ATTRIBUTED; group]; and the same weighted. `group` names that of each row, or ALL for none."""
    native_runs = run_array(runs)
    count = len(runs[0].rows)
    kept = [np.ascontiguousarray(group, np.uint32)]
    frames = 0
    if weights is not None:
        frames = weights.inherent.shape[-1]
        kept.append(np.ascontiguousarray(weights.frame, np.uint32))
        kept += [np.ascontiguousarray(of, np.float64) for of in (weights.as_run, weights.inherent, weights.attributed)]
        if kept[2].size != len(runs) * frames or kept[4].size != len(runs) * frames:
            raise ValueError("weights of another shape")
    if any(len(of) != count for of in kept[:2]):
        raise ValueError("not a group and a frame for each row")
    addresses = [of.ctypes.data for of in kept] + [None] * (5 - len(kept))
    grouping = _Grouping(addresses[0], groups, addresses[1], frames, *addresses[2:])
    sums = np.zeros((groups, 3))
    weighted = None if weights is None else np.zeros((groups, 3))
    failed = _library().by_samples_group_times(
        native_runs, len(runs), count, grouping, sums.ctypes.data, None if weighted is None else weighted.ctypes.data
    )
    if failed:
        raise MemoryError
    return sums.T, None if weighted is None else weighted.T


def bins(runs: Sequence[Rows], frame: Frame, threads: int) -> list[Bins]:
    """The planes of one allocator (MALLOC_AS_RUN ... FREE_ATTRIBUTED), in one pass."""
    library = _library()
    handle = library.by_samples_bin(run_array(runs), len(runs), len(runs[0].rows), frame, threads)
    if not handle:
        raise MemoryError
    try:
        return [_plane(library.by_samples_bins_plane(handle, plane), frame) for plane in range(PLANES)]
    finally:
        library.by_samples_bins_delete(handle)


def _plane(plane: _Plane, frame: Frame) -> Bins:
    def cells(address: ctypes.Array) -> np.ndarray:
        return np.ctypeslib.as_array(address, (frame.width, frame.height)).T

    counts, sizes = cells(plane.counts), cells(plane.sizes)
    mean = np.divide(sizes, 4 * np.maximum(counts, 1, dtype=np.uint64), dtype=np.float32, casting="unsafe")
    marks = np.frombuffer(ctypes.string_at(plane.marks, plane.mark_count * MARK.itemsize), MARK)
    return Bins(counts.copy(), mean, marks)
