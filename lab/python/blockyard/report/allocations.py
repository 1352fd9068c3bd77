"""The study's per-allocation CSV: one row an allocation in order, with the time of its free."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from blockyard.analysis import samples
from blockyard.analysis.distribution import SATURATED
from blockyard.analysis.passes import FREE, REALLOCATE
from blockyard.analysis.sections import AllocatorRuns, Run, Section
from blockyard.errors import UserError
from blockyard.files import whole

_ROWS_AT_ONCE = 1 << 20
"""A journal may be longer than memory: its rows are mapped, and looked at in parts."""

HEADER = ("replayAllocTimestamp", "allocTime", "allocSize", "replayFreeTimestamp", "freeTime")


def write(target: Path, section: Section, allocator: AllocatorRuns, run: Run, gross: bool) -> Path:
    """All columns in whole ns but the size, in bytes. allocTime includes the touch.

    `0,0` stands where a block was never freed. A reallocate ends one row and makes another: its whole time is the new
    row's allocTime, and the old row ends at its start with a freeTime of 0.
    """
    pairs = section.pairs()
    if pairs is None:
        raise UserError(
            f"{section.folder / 'pairs.npy'} is missing, which says what frees what: the per-allocation "
            "CSV needs it; run 'blockyard replay' again"
        )
    rows = samples.rows(run.folder / "samples.npy")
    rate = run.number("ticks_per_ns")
    floors = (0, 0) if gross else allocator.floor_ticks(run)
    find = _Finder(rows["event"])

    def write_rows(path: Path) -> None:
        with path.open("wb") as file:
            file.write((",".join(HEADER) + "\n").encode())
            for begin in range(0, len(rows), _ROWS_AT_ONCE):
                part = rows[begin : begin + _ROWS_AT_ONCE]
                given = part[part["kind"] != FREE]
                freed_by = find.rows_of(_freeing_events(pairs, given["event"]))
                freed = freed_by >= 0
                freer = rows[freed_by[freed]]
                by_free = freer["kind"] != REALLOCATE
                freed_at, free_ns = np.zeros(len(given), np.uint64), np.zeros(len(given), np.uint64)
                freed_at[freed] = freer["start"]
                free_ns[np.flatnonzero(freed)[by_free]] = _ns(freer["call"][by_free], floors[0], rate)
                took = _ns(given["call"], floors[0], rate) + _ns(given["touch"], floors[1], rate)
                columns = (given["start"], took, given["size"], freed_at, free_ns)
                table = pa.table(dict(zip(HEADER, map(np.ascontiguousarray, columns), strict=True)))
                pa.csv.write_csv(table, file, pa.csv.WriteOptions(include_header=False))

    whole(target, write_rows)
    return target


def _ns(ticks: np.ndarray, floor: int, rate: float) -> np.ndarray:
    net = np.where(ticks > floor, ticks - np.uint32(floor), np.uint32(0)).astype(np.float64)
    net[ticks == SATURATED] = SATURATED
    return np.rint(net / rate).astype(np.uint64)


def _freeing_events(pair: np.ndarray, allocations: np.ndarray) -> np.ndarray:
    """For each allocating event the one that frees its block, or NO_EVENT."""
    freer = np.full(len(allocations), samples.NO_EVENT, np.uint32)
    known = allocations < len(pair)
    freer[known] = pair[allocations[known]]
    return freer


class _Finder:
    """Finds an event's row. Event numbers rise by one from row to row but where a mark has one: only these are kept."""

    def __init__(self, events: np.ndarray) -> None:
        events_of_runs, rows_of_runs = [], []
        for begin in range(0, len(events), _ROWS_AT_ONCE):
            part = events[max(begin - 1, 0) : begin + _ROWS_AT_ONCE].astype(np.int64)
            skips = np.flatnonzero(np.diff(part) != 1) + 1
            if not begin:
                skips = np.concatenate([[0], skips])
            events_of_runs.append(part[skips])
            rows_of_runs.append(skips + max(begin - 1, 0))
        self._events = np.concatenate([*events_of_runs, np.zeros(0, np.int64)])
        self._rows = np.concatenate([*rows_of_runs, np.zeros(0, np.int64)])
        self._ends = np.append(self._rows[1:], len(events)) if len(self._rows) else self._rows

    def rows_of(self, events: np.ndarray) -> np.ndarray:
        """-1 where an event has no row."""
        events = events.astype(np.int64)
        if not len(self._rows):
            return np.full(len(events), -1, np.int64)
        run = np.searchsorted(self._events, events, side="right") - 1
        row = self._rows[run] + events - self._events[run]
        return np.where((run >= 0) & (row < self._ends[run]), row, -1)
