"""The study's files in, what was measured out: of another program that did the same test, such as the C# one."""

import csv
from pathlib import Path

import numpy as np

from blockyard.errors import UserError
from blockyard.locality.measure import OURS, Measured
from blockyard.locality.tables import FILE_NAMES, TICK_NS

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
