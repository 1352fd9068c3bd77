"""Every sample as Parquet: one file an allocator."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from blockyard.analysis.distribution import SATURATED
from blockyard.analysis.figures import open_rows
from blockyard.analysis.sections import AllocatorRuns, Section
from blockyard.files import whole

_ROWS_AT_ONCE = 1 << 20
_DIFFERENCES = "DELTA_BINARY_PACKED"
_ROWS_IN_CACHE = 1 << 14
"""So many rows are taken apart at a time: a column at a time of more would fetch each row from memory once a column."""


def write(target: Path, section: Section, allocator: AllocatorRuns, gross: bool) -> Path:
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
