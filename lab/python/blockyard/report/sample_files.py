"""Every event of a run in files: all samples as Parquet, one file an allocator; and the study's per-allocation CSV, one
row an allocation in order, with the time of its free."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from blockyard.analysis import samples
from blockyard.analysis.distribution import SATURATED
from blockyard.analysis.figures import open_rows
from blockyard.analysis.passes import FREE, REALLOCATE
from blockyard.analysis.sections import AllocatorRuns, Run, Section
from blockyard.errors import UserError
from blockyard.files import whole

_ROWS_AT_ONCE = 1 << 20
"""A journal may be longer than memory: its rows are mapped, and looked at in parts."""
_DIFFERENCES = "DELTA_BINARY_PACKED"
_ROWS_IN_CACHE = 1 << 14
"""So many rows are taken apart at a time: a column at a time of more would fetch each row from memory once a column."""


def parquet(target: Path, section: Section, allocator: AllocatorRuns, gross: bool) -> Path:
    """All samples of one allocator: a row an event, what all repeats share once, then each repeat's columns.

    `call_R` and `touch_R` are ticks net of the floor (4294967295: at least that), `start_R` ns; the file's metadata has
    `ticks_per_ns` and the floors. Wide, because an event's repeats are read together and its facts need no repeating.
    """
    opened = open_rows(allocator, gross)
    first = opened[0].rows
    shared = ("event", "kind", "thread", "size", "frame")
    repeated = ("start", "call", "touch", "cause")
    names = [*shared, *(f"{name}_{run.repeat}" for run in allocator.runs for name in repeated)]
    metadata = {
        "allocator": allocator.name,
        "version": allocator.version,
        "journal": section.journal,
        "pace": section.pace,
        "touch": section.touch,
        "threads": section.threads,
        "ticks_per_ns": [run.number("ticks_per_ns") for run in allocator.runs],
        "floor_call_ticks": [run.floor_call for run in opened],
        "floor_touch_ticks": [run.floor_touch for run in opened],
    }
    # Not nullable: what can't be missing needs no levels that say that it is there.
    schema = pa.schema(
        [pa.field(name, pa.from_numpy_dtype(first.dtype[name.partition("_")[0]]), nullable=False) for name in names],
        metadata={"blockyard": json.dumps(metadata)},
    )

    def write_rows(path: Path) -> None:
        packed = [name for name in names if _encoding(name) != _DIFFERENCES]  # differences don't get smaller
        with pq.ParquetWriter(
            path,
            schema,
            compression=dict.fromkeys(names, "none") | dict.fromkeys(packed, "zstd"),
            compression_level=dict.fromkeys(packed, 1),
            use_dictionary=False,
            write_statistics=False,
            column_encoding={name: _encoding(name) for name in names},
        ) as writer:
            for begin in range(0, len(first), _ROWS_AT_ONCE):
                columns = _apart(first[begin : begin + _ROWS_AT_ONCE], dict.fromkeys(shared, 0))
                for run in opened:
                    columns += _apart(
                        run.rows[begin : begin + _ROWS_AT_ONCE],
                        {"start": 0, "call": run.floor_call, "touch": run.floor_touch, "cause": 0},
                    )
                writer.write_batch(pa.record_batch(columns, schema=schema))

    whole(target, write_rows)
    return target


def _encoding(name: str) -> str:
    """Times rise by little from row to row: their differences take a byte or two. Of the rest the higher bytes are
    nearly all equal: laid side by side they compress better and several times as fast."""
    return _DIFFERENCES if name.startswith("start") else "BYTE_STREAM_SPLIT"


def _apart(rows: np.ndarray, floors: dict[str, int]) -> list[np.ndarray]:
    """The columns named, each of its own, with that many ticks off; what is saturated stays so."""
    found = {name: np.empty(len(rows), rows.dtype[name]) for name in floors}
    for begin in range(0, len(rows), _ROWS_IN_CACHE):
        part = slice(begin, begin + _ROWS_IN_CACHE)
        for name, floor in floors.items():
            values = found[name][part]
            values[:] = rows[name][part]
            if floor:
                saturated = np.flatnonzero(values == SATURATED) if values.max() == SATURATED else ()
                np.maximum(values, np.uint32(floor), out=values)
                values -= np.uint32(floor)
                if len(saturated):
                    values[saturated] = SATURATED
    return list(found.values())


HEADER = ("replayAllocTimestamp", "allocTime", "allocSize", "replayFreeTimestamp", "freeTime")


def allocations(target: Path, section: Section, allocator: AllocatorRuns, run: Run, gross: bool) -> Path:
    """All columns in whole ns but the size, in bytes. allocTime includes the touch.

    `0,0` stands where a block was never freed. A reallocate ends one row and makes another: its whole time is the new
    row's allocTime, and the old row ends at its start with a freeTime of 0.
    """
    arrays = section.arrays()
    if "pair" not in arrays:
        raise UserError(
            f"{section.folder / 'events.npz'} is missing, which says what frees what: the per-allocation "
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
                freed_by = find.rows_of(_freeing_events(arrays["pair"], given["event"]))
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
