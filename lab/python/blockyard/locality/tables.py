"""Measured processes in, the study's three files and one table out; and these files in, of another program that did the
same test, such as the C# one."""

import csv
import dataclasses
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from blockyard.errors import UserError
from blockyard.files import whole_csv
from blockyard.locality.measure import OURS, Measured, Test
from blockyard.report import table
from blockyard.report.table import Column, Unit

_LINE = 64
_PAGE = 4096
# A distance between fewer of the blocks than this is common by chance.
_LEAST_COMMON = 0.01
TICK_NS = 100
FILE_NAMES = {"temp": "Temp", "temp-job": "TempJob", "persistent": "Persistent", "block": "Block"}


@dataclasses.dataclass(frozen=True)
class Row:
    """One allocator: medians over the repeats, placement of the first repeat's first pass."""

    name: str
    version: str
    allocate_cold: float
    allocate_warm: float
    free_cold: float
    free_warm: float
    common_distance: int
    common_share: float
    distinct: int
    lines: float
    pages: float


def distances(measured: Measured, size: int) -> np.ndarray:
    """Each block's begin minus the end of the one before."""
    return np.diff(measured.addresses) - size


def row(name: str, repeats: Sequence[Measured], test: Test) -> Row:
    first = repeats[0]
    found, counts = np.unique(distances(first, test.size), return_counts=True)
    at = int(np.argmax(counts))

    def per_block(values: Sequence[float]) -> float:
        return float(np.median(values)) / test.count

    return Row(
        name,
        first.version,
        per_block([one.cold_allocate for one in repeats]),
        per_block([float(np.median(one.warm_allocate)) for one in repeats]),
        per_block([one.cold_free for one in repeats]),
        per_block([float(np.median(one.warm_free)) for one in repeats]),
        int(found[at]),
        float(counts[at] / counts.sum()),
        len(found),
        _touched(first.addresses, test.size, _LINE) * 1000 / test.count,
        _touched(first.addresses, test.size, _PAGE) * 1000 / test.count,
    )


def shown(rows: Iterable[Row]) -> table.Table:
    """For the terminal."""
    columns = {
        "allocate_cold": Column("alloc\ncold", Unit.NS),
        "allocate_warm": Column("alloc\nwarm", Unit.NS),
        "free_cold": Column("free\ncold", Unit.NS),
        "free_warm": Column("free\nwarm", Unit.NS),
        "common_distance": Column("common\ndist.", Unit.COUNT),
        "common_share": Column("share", Unit.SHARE),
        "distinct": Column("kinds", Unit.COUNT),
        "lines": Column("lines\n/1000", Unit.COUNT),
        "pages": Column("pages\n/1000", Unit.COUNT),
    }

    def cell(one: Row, name: str) -> float | None:
        by_chance = name.startswith("common") and one.common_share < _LEAST_COMMON
        return None if by_chance else getattr(one, name)

    cells = [table.Row(one.name, [cell(one, name) for name in columns]) for one in rows]
    absent = "no distance occurs for 1 % of the blocks or more"
    return table.Table("Time per block, and where blocks lie", list(columns.values()), cells, absent=absent)


def _touched(addresses: np.ndarray, size: int, unit: int) -> int:
    """How many lines or pages hold a byte of any block."""
    ordered = np.sort(addresses)
    first, last = ordered // unit, (ordered + size - 1) // unit
    # Of equal sizes, so a block that begins later ends later too.
    seen = np.concatenate([first[:1] - 1, last[:-1]])
    return int((last - np.maximum(first - 1, seen)).sum())


def study_files(name: str) -> list[str]:
    """What the three files of an allocator are called."""
    return [f"{FILE_NAMES.get(name, name)}_{what}.csv" for what in ("times", "distances", "buckets")]


def write_study_files(folder: Path, name: str, repeats: Sequence[Measured], test: Test) -> list[Path]:
    """NAME_times.csv, NAME_distances.csv and NAME_buckets.csv, with the study's headers."""
    times, places, counted = (folder / file for file in study_files(name))
    ticks = [
        ("Allocate", _ticks([one.cold_allocate for one in repeats])),
        ("Deallocate", _ticks([one.cold_free for one in repeats])),
    ]
    apart = distances(repeats[0], test.size)
    buckets = np.unique(apart, return_counts=True)
    return [
        whole_csv(times, ("Operation", "Ticks"), ticks),
        whole_csv(places, ("Distance",), [(int(value),) for value in apart]),
        whole_csv(counted, ("Distance", "Count"), np.stack(buckets, axis=1).tolist()),
    ]


def _ticks(loops_ns: Sequence[float]) -> int:
    return round(float(np.median(loops_ns)) / TICK_NS)


def remove_study_files(path: Path, kept: Container[str]) -> None:
    """Removes the files of an earlier result's allocators, as its table names them, but those of `kept`."""
    try:
        with path.open(newline="") as file:
            names = [line[0] for line in list(csv.reader(file))[1:] if line]
    except (FileNotFoundError, UnicodeDecodeError, csv.Error):
        return
    for name in names:
        # A name is one file's, in this folder: a table that says otherwise was not written here.
        if name not in kept and Path(name).name == name:
            for file_name in study_files(name):
                (path.parent / file_name).unlink(missing_ok=True)


def write_table(path: Path, rows: Sequence[Row]) -> Path:
    return whole_csv(
        path, [field.name for field in dataclasses.fields(Row)], [dataclasses.astuple(one) for one in rows]
    )


def ratios(rows: Mapping[str, Row]) -> Iterator[table.Table]:
    """The study's ratios beside ours, where both of a pair were measured."""
    found = []
    for slow, fast, *study in (("persistent", "temp-job", 5.0, 8.0), ("temp-job", "temp", 2.0, 5.0)):
        for call, theirs in zip(("allocate", "free"), study, strict=True):
            if slow in rows and fast in rows:
                ours = (
                    getattr(rows[slow], f"{call}_{state}") / getattr(rows[fast], f"{call}_{state}")
                    for state in ("cold", "warm")
                )
                found.append(table.Row(f"{slow} / {fast}, {call}", [theirs, *ours]))
    columns = [Column(name, Unit.RATE) for name in ("study", "cold", "warm")]
    if found:
        yield table.Table("Ratios of times: the study's, and here of first passes and of warm ones", columns, found)


def placements(results: Mapping[str, Sequence[Measured]], size: int) -> table.Table:
    rows = [table.Row(name, [placement(distances(runs[0], size))]) for name, runs in results.items()]
    return table.Table("Distances, in the order of allocation", [Column("distance")], rows)


def times(results: Mapping[str, Sequence[Measured]]) -> table.Table:
    """Of first passes, by block."""
    rows = [
        table.Row(name, [run.cold_allocate / len(run.addresses), run.cold_free / len(run.addresses)])
        for name, (run,) in results.items()
    ]
    return table.Table("Time per block", [Column("allocate", Unit.NS), Column("free", Unit.NS)], rows)


def placement(apart: np.ndarray) -> str:
    """What the distances do, in a sentence: the most common one before and after the furthest jump."""
    jump = int(np.argmax(np.abs(apart)))
    before, after = apart[:jump], apart[jump + 1 :]
    if len(np.unique(apart)) == 1:
        return f"always {apart[0]} bytes"
    if len(before) and len(after) and len(np.unique(before)) == 1 and len(np.unique(after)) <= 2:
        values, counts = np.unique(after, return_counts=True)
        # Distance k lies between blocks k + 1 and k + 2, counted from 1.
        return (
            f"{before[0]} bytes until block {jump + 2}, which jumps by {apart[jump]:,} bytes; "
            f"then {values[np.argmax(counts)]} bytes"
        )
    values, counts = np.unique(apart, return_counts=True)
    share = counts.max() / len(apart)
    if share < _LEAST_COMMON:
        return f"scattered: {len(values)} distances, none of them for 1 % of the blocks"
    return f"{values[np.argmax(counts)]} bytes for {share:.0%}, {len(values)} distances"


_NAMES = {stem: name for name, stem in FILE_NAMES.items()}


def read(folder: Path) -> dict[str, list[Measured]]:
    """Every NAME with its three files; one process each, of which no later passes are known."""
    found = {}
    for path in sorted(folder.glob("*_distances.csv")):
        stem = path.name.removesuffix("_distances.csv")
        found[_NAMES.get(stem, stem)] = [_measured(folder, stem)]
    if not found:
        raise UserError(f"{folder} has no NAME_distances.csv; --draw takes a folder that 'blockyard locality -o' wrote")
    ours = [name for name in OURS if name in found]
    return {name: found[name] for name in [*ours, *sorted(found.keys() - OURS)]}


def _measured(folder: Path, stem: str) -> Measured:
    apart = np.array([value for (value,) in _rows(folder / f"{stem}_distances.csv", ("Distance",))], dtype=np.int64)
    if len(apart) == 0:
        raise UserError(f"{folder / stem}_distances.csv holds no distance")
    buckets = _rows(folder / f"{stem}_buckets.csv", ("Distance", "Count"))
    values, counts = np.unique(apart, return_counts=True)
    if sorted(map(tuple, buckets)) != list(zip(values.tolist(), counts.tolist(), strict=True)):
        raise UserError(f"{folder / stem}_buckets.csv does not count the distances in {stem}_distances.csv")
    times = folder / f"{stem}_times.csv"
    ticks = {
        "".join(line[:1]): _numbers(times, number, line[1:], 1)[0]
        for number, line in enumerate(_lines(times, ("Operation", "Ticks")), start=2)
    }
    if ticks.keys() != {"Allocate", "Deallocate"}:
        raise UserError(f"{folder / stem}_times.csv needs a row for Allocate and one for Deallocate")
    # Of blocks without length, since the files do not say it, and from address 0 on: the distances are what they were.
    addresses = np.concatenate([[0], np.cumsum(apart)])
    none = np.array([])
    return Measured("", ticks["Allocate"] * TICK_NS, ticks["Deallocate"] * TICK_NS, none, none, addresses)


def _lines(path: Path, header: tuple[str, ...]) -> list[list[str]]:
    try:
        with path.open(newline="") as file:
            lines = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} can't be read: {getattr(error, 'strerror', None) or error}") from None
    if not lines or lines[0] != list(header):
        raise UserError(f"{path} does not begin with {','.join(header)}")
    return lines[1:]


def _rows(path: Path, header: tuple[str, ...]) -> list[list[int]]:
    return [_numbers(path, number, line, len(header)) for number, line in enumerate(_lines(path, header), start=2)]


def _numbers(path: Path, number: int, line: list[str], columns: int) -> list[int]:
    try:
        values = [int(word) for word in line]
    except ValueError:
        values = []
    if len(values) != columns or any(abs(value) >= 1 << 62 for value in values):
        raise UserError(
            f"{path}, line {number}: {','.join(line)!r} is not {columns} whole number{'s' if columns > 1 else ''}"
        )
    return values
