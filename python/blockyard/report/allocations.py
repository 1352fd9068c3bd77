"""The study's per-allocation CSV: one row an allocation in order, with the time of its free."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from blockyard.analysis import samples
from blockyard.analysis.distribution import SATURATED
from blockyard.analysis.journal_facts import FREE, REALLOCATE
from blockyard.analysis.sections import Run, Section
from blockyard.errors import UserError
from blockyard.report.files import whole

HEADER = ("replayAllocTimestamp", "allocTime", "allocSize", "replayFreeTimestamp", "freeTime")


def write(target: Path, section: Section, run: Run, gross: bool) -> Path:
    """All columns in whole ns but the size, in bytes. allocTime includes the touch.

    `0,0` stands where a block was never freed. A reallocate ends one row and makes another: its whole time is the new
    row's allocTime, and the old row ends at its start with a freeTime of 0.
    """
    arrays = section.arrays()
    if "pair" not in arrays:
        raise UserError(f"{section.folder / 'events.npz'} is missing, which says what frees what: the per-allocation "
                        "CSV needs it; run 'blockyard replay' again")
    rows = samples.rows(run.folder / "samples.npy")
    rate = run.number("ticks_per_ns")
    floors = [0, 0] if gross else [round(run.number(f"floor_{part}_ticks")) for part in ("call", "touch")]
    kind, call, touch = (np.array(rows[name]) for name in ("kind", "call", "touch"))
    call_ns, touch_ns = _ns(call, floors[0], rate), _ns(touch, floors[1], rate)
    starts, events = np.array(rows["start"]), np.array(rows["event"])

    allocations = np.flatnonzero(kind != FREE)
    freed_by = _rows_of(arrays["pair"], events, events[allocations])
    freed = freed_by >= 0
    by_realloc = freed & (kind[freed_by] == REALLOCATE)
    freed_at, free_ns = np.zeros(len(allocations), np.uint64), np.zeros(len(allocations), np.uint64)
    freed_at[freed] = starts[freed_by[freed]]
    only_freed = freed & ~by_realloc
    free_ns[only_freed] = call_ns[freed_by[only_freed]]
    table = pa.table(dict(zip(HEADER, (starts[allocations], (call_ns + touch_ns)[allocations],
                                       np.array(rows["size"])[allocations], freed_at, free_ns), strict=True)))

    def write_rows(path: Path) -> None:
        with path.open("wb") as file:
            file.write((",".join(HEADER) + "\n").encode())
            pa.csv.write_csv(table, file, pa.csv.WriteOptions(include_header=False))

    whole(target, write_rows)
    return target


def _ns(ticks: np.ndarray, floor: int, rate: float) -> np.ndarray:
    net = np.where(ticks > floor, ticks - np.uint32(floor), np.uint32(0)).astype(np.float64)
    net[ticks == SATURATED] = SATURATED
    return np.rint(net / rate).astype(np.uint64)


def _rows_of(pair: np.ndarray, events: np.ndarray, allocations: np.ndarray) -> np.ndarray:
    """For each allocating event the row of the event that frees it; -1 where there is none or it was not measured."""
    row_of = np.full(max(len(pair), int(events.max(initial=0)) + 1), -1, np.int64)
    row_of[events] = np.arange(len(events))
    freer = np.full(len(allocations), samples.NO_EVENT, np.uint32)
    known = allocations < len(pair)
    freer[known] = pair[allocations[known]]
    inside = freer < len(row_of)
    rows = np.full(len(allocations), -1, np.int64)
    rows[inside] = row_of[freer[inside]]
    return rows
