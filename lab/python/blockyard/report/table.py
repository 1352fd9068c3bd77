"""One typed table: its cells are values, and each renderer (text, Markdown, terminal, CSV, JSON, page) words them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from blockyard import units
from blockyard.units import Nanoseconds

if TYPE_CHECKING:
    from blockyard.analysis import noise

INTERVALS = "intervals"


class Unit(Enum):
    """What a column is measured in; text is aligned to the left, all else to the right."""

    TEXT = "text"
    NS = "ns"
    BYTES = "bytes"
    COUNT = "count"
    RATE = "rate"
    SHARE = "share"


@dataclass(frozen=True)
class Ranged:
    """A figure with the ends of its interval; `figure` is what claims are made of, at that confidence."""

    value: Nanoseconds | float
    low: Nanoseconds | float
    high: Nanoseconds | float
    figure: "noise.Figure"
    confidence: float


class Name(str):
    """A function's, which takes less room where there is little."""


Cell = str | float | Nanoseconds | Ranged | None
"""None is not known, or not supported by the samples."""


@dataclass(frozen=True)
class Column:
    """`name` may have line breaks where it is too long for one. Of a `marked` column the lowest is brought out."""

    name: str
    unit: Unit = Unit.TEXT
    marked: bool = False

    @property
    def plain(self) -> str:
        return " ".join(self.name.split())


def marked(*names: str, unit: Unit = Unit.NS) -> list[Column]:
    return [Column(name, unit, True) for name in names]


@dataclass(frozen=True)
class Row:
    """`key` is the allocator's full name, where the row is one's; `dim` rows do not compete. `below`: lines that a text
    has below it."""

    name: str
    cells: Sequence[Cell]
    key: str = ""
    dim: bool = False
    below: Sequence[str] = ()


@dataclass(frozen=True)
class Table:
    """`circumstances`, view and variant, complete the title. `absent` says what a dash means. `asked` is the column
    that the answer is about, `own` the key of the row that it compares with."""

    name: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    circumstances: Sequence[str] = ()
    notes: Sequence[str] = ()
    absent: str = ""
    asked: str = ""
    own: str = ""
    first: str = "allocator"
    said: str = ""
    """The answer, where it is no lowest figure."""
    better: frozenset[tuple[int, int]] = frozenset()
    """(row, column) of cells that are brought out beside the lowest."""

    @property
    def title(self) -> str:
        return ": ".join(filter(None, (self.name, ", ".join(self.circumstances))))

    @property
    def answer(self) -> str:
        """Who is lowest in the column that is asked about, and what the program's own allocator has there."""
        if self.said:
            return self.said
        column = next((place for place, one in enumerate(self.columns) if one.name == self.asked), None)
        competing = [row for row in self.rows if not row.dim]
        if column is None or len(competing) < 2:
            return ""
        lowest = [row for y, row in enumerate(self.rows) if (y, column) in self.lowest()]
        if not lowest:
            return ""
        unit = self.columns[column].unit
        names = ", ".join(f"{row.name} ({words(row.cells[column], unit)})" for row in lowest[:3])
        more = f" and {len(lowest) - 3} more" if len(lowest) > 3 else ""
        own = next((row for row in competing if row.key == self.own and row not in lowest), None)
        beside = f"; {own.name} {words(own.cells[column], unit)}" if own is not None else ""
        return f"Lowest {self.columns[column].plain}: {names}{more}{beside}."

    @property
    def footnotes(self) -> list[str]:
        cells = [(cell, column.unit) for row in self.rows for cell, column in zip(row.cells, self.columns, strict=True)]
        found = list(self.notes)
        if self.absent and any(cell is None for cell, _ in cells):
            found.append(f"{units.ABSENT} {self.absent}")
        if any(words(cell, unit).startswith("≥") for cell, unit in cells):
            found.append("≥ the measurement could hold no more: it took at least that long")
        if any(row.name.endswith("*") for row in self.rows):
            found.append("* not thread-safe: a lock around every call is part of its figures")
        return found

    def lowest(self) -> frozenset[tuple[int, int]]:
        """(row, column) of the lowest in each marked column, and of what is not claimed to be higher: within 2 % or one
        tick of it, or not beyond noise."""
        return self.better | {
            (y, x) for x, column in enumerate(self.columns) if column.marked for y in _lowest(self.rows, x)
        }

    def intervals(self) -> "Table | None":
        """A table of the intervals of this one's figures; None where it has none."""
        places = [x for x in range(len(self.columns)) if any(isinstance(row.cells[x], Ranged) for row in self.rows)]
        if not places:
            return None
        rows = [replace(row, cells=[_span(row.cells[x], self.columns[x].unit) for x in places]) for row in self.rows]
        columns = [Column(self.columns[x].name, Unit.TEXT) for x in places]
        circumstances = (INTERVALS, *self.circumstances)
        return replace(self, columns=columns, rows=rows, circumstances=circumstances, notes=(), asked="")

    def worded(self) -> list[list[str]]:
        """All cells as people read them, each row with its name before them."""
        return [
            [row.name, *(words(cell, column.unit) for cell, column in zip(row.cells, self.columns, strict=True))]
            for row in self.rows
        ]

    def records(self) -> Iterator[dict[str, Any]]:
        """A record a cell, for tables.csv."""
        for row in self.rows:
            for column, cell in zip(self.columns, row.cells, strict=True):
                value, low, high = _plain(cell)
                yield {
                    "table": self.name,
                    "circumstances": ", ".join(self.circumstances),
                    "row": row.key or row.name,
                    "column": column.plain,
                    "unit": column.unit.value,
                    "value": value,
                    "low": low,
                    "high": high,
                }

    def json(self) -> dict[str, Any]:
        """Durations in ns, sizes in bytes, shares of 1; a figure with an interval is a list of it and its ends."""
        return {
            "title": self.title,
            "answer": self.answer,
            "columns": [{"name": column.plain, "unit": column.unit.value} for column in self.columns],
            "rows": [{"name": row.key or row.name, "cells": [raw(cell) for cell in row.cells]} for row in self.rows],
            "notes": self.footnotes,
        }


def words(cell: Cell, unit: Unit) -> str:
    match cell:
        case None:
            return units.ABSENT
        case str():
            return cell
        case Ranged(value=value):
            return words(value, unit)
        case Nanoseconds():
            return units.latency(cell)
    match unit:
        case Unit.NS:
            return units.duration(cell)
        case Unit.BYTES:
            return units.size(cell)
        case Unit.RATE:
            return units.rate(cell)
        case Unit.SHARE:
            return units.share(cell)
        case _:
            return f"{cell:,.0f}"


def raw(cell: Cell) -> Any:
    value, low, high = _plain(cell)
    return value if low is None else [value, low, high]


def number(cell: Cell) -> float | None:
    value = _plain(cell)[0]
    return None if isinstance(value, str) else value


def _plain(cell: Cell) -> tuple[Any, float | None, float | None]:
    """Value and ends as numbers."""
    if isinstance(cell, Ranged):
        return tuple(_plain(one)[0] for one in (cell.value, cell.low, cell.high))
    value = cell.value if isinstance(cell, Nanoseconds) else cell
    return round(value, 7) if isinstance(value, float) else value, None, None


def _span(cell: Cell, unit: Unit) -> str | None:
    """`12.3–14.5 us`; each end with its own unit where they differ."""
    if not isinstance(cell, Ranged):
        return None
    return units.span(words(cell.low, unit), words(cell.high, unit), "–")


def _lowest(rows: Sequence[Row], x: int) -> Iterable[int]:
    known = {y: value for y, row in enumerate(rows) if not row.dim and (value := number(row.cells[x])) is not None}
    if len(known) < 2:
        return []
    first = min(known, key=known.__getitem__)
    steps = [cell.value if isinstance(cell := row.cells[x], Ranged) else cell for row in rows]
    step = max((one.step for one in steps if isinstance(one, Nanoseconds)), default=0.0)
    limit = max(known[first] * 1.02, known[first] + 1.5 * step)
    return [y for y, value in known.items() if value <= limit or _no_claim(rows[first].cells[x], rows[y].cells[x])]


def _no_claim(least: Cell, other: Cell) -> bool:
    if not isinstance(least, Ranged) or not isinstance(other, Ranged):
        return False
    from blockyard.analysis import noise  # here, as it brings scipy along, which other verbs' tables do not need

    found = noise.difference(least.figure, other.figure, least.confidence)
    return found.verdict is noise.Verdict.INCONCLUSIVE
