"""What the report's page explores: latency histograms of short stretches of time, and the slowest events one by one."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from blockyard.analysis import passes, samples_library
from blockyard.analysis.samples_library import F64, POINTER, SIZE, U32, U64, fields

PER_OCTAVE = 16
"""Bins of latency an octave. The middle of a bin is at most 2.2 % from anything in it."""
BINS = 1 + 32 * PER_OCTAVE + 1
"""Bin 0 for less than a tick, then 1 ns to 4.3 s, and one for what is longer."""
ERROR = 2 ** (0.5 / PER_OCTAVE) - 1
"""How far a percentile that is read out of a histogram can be from the truth, as a share of it."""
COLUMNS = 4096
"""Stretches of time before neighbours are joined to save room: 2 ms each of a stretch of 8 s."""
PLANES = tuple(
    f"{operation}_{view}"
    for view in ("as_run", "by_machine", "inherent", "returned")
    for operation in ("malloc", "free")
)


class _Frame(ctypes.Structure):
    _fields_ = fields((U32, "columns bins per_octave"), (F64, "begin_ns end_ns ticks_per_ns"))


@dataclass(frozen=True)
class Cells:
    """The occupied cells of one plane in order of time, then of latency."""

    columns: np.ndarray
    bins: np.ndarray
    counts: np.ndarray

    def joined(self, factor: int) -> "Cells":
        """With every `factor` neighbouring stretches as one."""
        if factor == 1:
            return self
        totals = np.bincount(self._keys(factor), self.counts, COLUMNS // factor * BINS)
        found = np.flatnonzero(totals)
        return Cells(found // BINS, found % BINS, totals[found].astype(np.uint32))

    def occupied(self, factor: int) -> int:
        """How many cells would then be left."""
        taken = np.zeros(COLUMNS // factor * BINS, bool)
        taken[self._keys(factor)] = True
        return int(np.count_nonzero(taken))

    def _keys(self, factor: int) -> np.ndarray:
        return self.columns // factor * BINS + self.bins


@dataclass(frozen=True)
class Tiles:
    """One allocator's: cells of all events but the single ones. `latencies` are those of the single rows, in ticks: a
    column for each repeat."""

    planes: tuple[Cells, ...]
    latencies: np.ndarray


@cache
def _library() -> ctypes.CDLL:
    arguments = [POINTER, U32, U64, ctypes.POINTER(_Frame), POINTER, SIZE, U32, POINTER, POINTER]
    return samples_library.functions([("by_samples_tile", ctypes.c_int, arguments)])


def tile(runs: Sequence[passes.Rows], single: np.ndarray, end_ns: float, ticks_per_ns: float, threads: int) -> Tiles:
    """One pass over all repeats of one allocator, whose rows a digest has found sound; the rows `single` must rise."""
    single = np.ascontiguousarray(single, np.uint64)
    counts = np.zeros((len(PLANES), COLUMNS * BINS), np.uint32)
    latencies = np.zeros((len(single), len(runs)), np.uint32)
    if _library().by_samples_tile(
        passes.run_array(runs),
        len(runs),
        len(runs[0].rows),
        _Frame(COLUMNS, BINS, PER_OCTAVE, 0.0, end_ns, ticks_per_ns),
        single.ctypes.data,
        len(single),
        threads,
        counts.ctypes.data,
        latencies.ctypes.data,
    ):
        raise MemoryError
    occupied = [(plane, np.flatnonzero(plane)) for plane in counts]
    return Tiles(tuple(Cells(found // BINS, found % BINS, plane[found]) for plane, found in occupied), latencies)
