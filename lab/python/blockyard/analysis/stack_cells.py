"""Call stacks joined with one run's rows, and what each did in short stretches of time, by ctypes."""

import ctypes
from dataclasses import dataclass
from functools import cache

import numpy as np

from blockyard.analysis import samples_library
from blockyard.analysis.passes import ROW, BadRows
from blockyard.analysis.samples_library import F64, POINTER, U32, U64, fields
from blockyard.analysis.sites import Sites

KINDS = ("malloc", "free", "died")
"""Cells of mallocs, of frees by the stack that freed, and of blocks' ends by the stack that allocated."""


class _Source(ctypes.Structure):
    _fields_ = fields(
        (POINTER, "node_of_event"),
        (U64, "event_count"),
        (U32, "node_count"),
        (POINTER, "pair"),
        (U64, "pair_count"),
        (F64, "columns_per_ns"),
        (U32, "columns"),
    )


class _Rows(ctypes.Structure):
    _fields_ = fields((POINTER, "node column died"))


class _Columns(ctypes.Structure):
    _fields_ = fields((POINTER, "occupied place calls bytes"))


@cache
def _library() -> ctypes.CDLL:
    rows = ctypes.POINTER(_Rows)
    return samples_library.functions(
        [
            ("by_samples_stack_events", ctypes.c_int, [POINTER, U64, ctypes.POINTER(_Source), rows, POINTER]),
            ("by_samples_cells_new", POINTER, [POINTER, U64, rows, POINTER, U32, U32]),
            ("by_samples_cells_delete", None, [POINTER]),
            ("by_samples_cells_count", U64, [POINTER, U32]),
            ("by_samples_cells_join", None, [POINTER]),
            ("by_samples_cells_copy", ctypes.c_int, [POINTER, ctypes.POINTER(_Columns), POINTER]),
        ]
    )


class Stacked:
    """Rows with the node of each, which is one more than there are where it has no stack. By node, that one too:
    `calls` and `bytes` of mallocs, `frees`, and `died_bytes` of the blocks whose end was seen. Raises BadRows where
    event numbers do not rise, or exceed the journal's."""

    def __init__(self, rows: np.ndarray, found: Sites, pair: np.ndarray | None, end_ns: float, columns: int) -> None:
        if rows.dtype != ROW or not rows.flags.c_contiguous:
            raise ValueError("rows of another layout")
        falls = np.flatnonzero(rows["event"][1:] <= rows["event"][:-1])
        if len(falls):
            raise BadRows(f"has event numbers that do not rise at row {falls[0] + 1}", 0)
        known = max(len(found.by_event), 0 if pair is None else len(pair))
        if len(rows) and rows["event"][-1] >= known:
            raise BadRows(f"has event {rows['event'][-1]:,}, while the journal has {known:,} events", 0)
        self.rows, self.columns = rows, columns
        self.node, self._column, self._died = (np.empty(len(rows), of) for of in (np.uint32, np.uint16, np.uint16))
        self._native = _Rows(self.node.ctypes.data, self._column.ctypes.data, self._died.ctypes.data)
        sums = np.zeros((4, len(found.parent) + 1))
        of_event, pairs = (np.ascontiguousarray(of, np.uint32) for of in (found.by_event, () if pair is None else pair))
        source = _Source(
            *(of_event.ctypes.data, len(of_event), len(found.parent), pairs.ctypes.data, len(pairs)),
            *(columns / end_ns, columns),
        )
        if _library().by_samples_stack_events(rows.ctypes.data, len(rows), source, self._native, sums.ctypes.data):
            raise MemoryError
        self.calls, self.bytes, self.frees, self.died_bytes = sums


@dataclass(frozen=True)
class Kind:
    """The occupied cells of one kind by column, then by place: how many each column has; of each its place, calls and
    bytes."""

    occupied: np.ndarray
    place: np.ndarray
    calls: np.ndarray
    bytes: np.ndarray


class Cells:
    """What each of `places` did, by column; `place` has that of each node."""

    def __init__(self, of: Stacked, place: np.ndarray, places: int) -> None:
        self.columns = of.columns
        self._of, self._place = of, np.ascontiguousarray(place, np.uint32)
        self._library = _library()
        self._handle = self._library.by_samples_cells_new(
            of.rows.ctypes.data, len(of.rows), of._native, self._place.ctypes.data, places, of.columns
        )
        if not self._handle:
            raise MemoryError

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.by_samples_cells_delete(self._handle)

    def counts(self) -> list[int]:
        """How many cells there are of each of KINDS."""
        return [self._library.by_samples_cells_count(self._handle, kind) for kind in range(len(KINDS))]

    def join(self) -> None:
        """Makes every two neighbouring columns one."""
        if self.columns % 2:
            raise ValueError("an odd number of columns")
        self._library.by_samples_cells_join(self._handle)
        self.columns //= 2

    def copy(self) -> tuple[dict[str, Kind], np.ndarray]:
        """By KINDS; and the number of the cell of each row: those of frees come after all of mallocs."""
        group = np.empty(len(self._of.rows), np.uint32)
        found = [
            Kind(*(np.zeros(size, of) for size, of in ((self.columns, "<u4"), (n, "<u4"), (n, "<u4"), (n, "<u8"))))
            for n in self.counts()
        ]
        to = (_Columns * len(KINDS))(
            *(_Columns(*(of.ctypes.data for of in (one.occupied, one.place, one.calls, one.bytes))) for one in found)
        )
        if self._library.by_samples_cells_copy(self._handle, to, group.ctypes.data):
            raise MemoryError
        return dict(zip(KINDS, found, strict=True)), group
