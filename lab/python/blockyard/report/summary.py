"""summary.csv and the Parquet files: every figure of the tables as data, and every sample."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from blockyard.analysis.bootstrap import Interval
from blockyard.analysis.distribution import SATURATED
from blockyard.analysis.figures import AllocatorFigures, open_rows
from blockyard.analysis.latency import PERCENTILES, SIZE_CLASSES, WITH_INTERVAL, Operation, Part, View
from blockyard.analysis.sections import AllocatorRuns, Section
from blockyard.report.files import whole

_COMBINATIONS = tuple(
    (operation, part)
    for operation in Operation
    for part in Part
    if operation is not Operation.FREE or part is Part.CALL
)
_ROWS_AT_ONCE = 1 << 20
_DIFFERENCES = "DELTA_BINARY_PACKED"
_ROWS_IN_CACHE = 1 << 14
"""So many rows are taken apart at a time: a column at a time of more would fetch each row from memory once a column."""


def rows(section: Section, figures: Sequence[AllocatorFigures], views: Sequence[View]) -> Iterator[dict[str, object]]:
    """One row a view, operation, part and size class (and all sizes together). Latencies in ns; null is unsupported."""
    for one in figures:
        for view in views:
            for operation, part in _COMBINATIONS:
                for size_class in (None, *range(len(SIZE_CLASSES))):
                    found = one.distribution(view, operation, part, size_class)
                    if not found.samples:
                        continue
                    supported = {percentile.label: found.percentile(percentile) for percentile in PERCENTILES}
                    ends = _ends(one.intervals(view, operation, part, size_class))
                    figure = {"best": found.best, **supported, "worst": found.worst, "mean": found.mean}
                    yield {
                        "journal": section.journal,
                        "pace": section.pace,
                        "touch": section.touch,
                        "threads": section.threads,
                        "allocator": one.name,
                        "variant": one.runs.variant,
                        "version": one.runs.version,
                        "repeats": len(one.runs.runs),
                        "view": view.value,
                        "operation": operation.value,
                        "part": part.value,
                        "size_class": "all" if size_class is None else SIZE_CLASSES[size_class],
                        "samples": found.samples,
                        **{
                            f"{label}_ns": None if value is None else round(value.value, 3)
                            for label, value in figure.items()
                        },
                        **ends,
                        "worst_is_at_least": found.worst.at_least,
                        "floor_call_ns": round(one.runs.floors_ns[0], 3),
                        "floor_touch_ns": round(one.runs.floors_ns[1], 3),
                    }


def _ends(intervals: dict[str, Interval | None]) -> dict[str, float | None]:
    """`p99.9_low_ns`, `p99.9_high_ns`: the 95 % bootstrap interval."""
    return {
        f"{percentile.label}_{end}_ns": None
        if (found := intervals[percentile.label]) is None
        else round(getattr(found, end).value, 3)
        for percentile in WITH_INTERVAL
        for end in ("low", "high")
    }


def write(target: Path, name: str, found: list[dict[str, object]]) -> list[Path]:
    """NAME.csv and NAME.parquet; nothing where there are no rows."""
    if not found:
        return []
    table = pa.Table.from_pylist(found)
    csv, parquet = target / f"{name}.csv", target / f"{name}.parquet"
    whole(csv, lambda path: pa.csv.write_csv(table, path, pa.csv.WriteOptions(quoting_style="needed")))
    whole(parquet, lambda path: pq.write_table(table, path, compression="zstd"))
    return [csv, parquet]


def write_samples(target: Path, section: Section, allocator: AllocatorRuns, gross: bool) -> Path:
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
    nearly all alike: laid side by side they compress better and several times as fast."""
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
