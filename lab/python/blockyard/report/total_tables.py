"""What all calls together take, as a table and as data."""

from collections.abc import Iterator, Sequence

from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.frames import thread_name
from blockyard.analysis.passes import ALL
from blockyard.analysis.sections import Section
from blockyard.analysis.totals import Total
from blockyard.report.latency_tables import ranged
from blockyard.report.lineup import Lineup
from blockyard.report.table import Cell, Column, Table, Unit, marked


def table(lineup: Lineup) -> Table:
    """All threads together, per repeat."""

    def cells(one: AllocatorFigures) -> list[Cell] | None:
        totals = one.runs.totals
        if totals is None or one.runs.is_null:
            return None
        found = totals.all
        return [
            ranged(one, one.latency(found.ns), found.figure),
            found.touch_ns,
            found.with_touch_ns,
            found.null_ns,
            found.repeats,
        ]

    return lineup.table(
        "all calls together",
        [*marked("calls", "first\ntouch", "both"), Column("replay's\nown", Unit.NS), Column("repeats", Unit.COUNT)],
        cells,
        "untimed",
        absent="causes were not looked for",
        notes=[
            "of one repeat, all threads, from repeats without a clock around each call, less the same on null "
            "(replay's own); timed calls added up are more, because a clock keeps calls from overlapping"
        ],
        asked="calls",
    )


def records(section: Section, figures: Sequence[AllocatorFigures]) -> Iterator[dict[str, object]]:
    """totals.csv: a row an allocator and thread, and one for all threads."""
    for one in figures:
        if one.runs.totals is None or one.runs.is_null:
            continue
        for found in one.runs.totals.by_thread:
            yield {
                **section.named,
                "allocator": one.name,
                "variant": one.runs.variant,
                "thread": _thread(section, found),
                "repeats": found.repeats,
                "total_ns": round(found.ns),
                "low_ns": _whole(found.low_ns),
                "high_ns": _whole(found.high_ns),
                "null_ns": round(found.null_ns),
                "touch_ns": _whole(found.touch_ns),
            }


def _thread(section: Section, found: Total) -> str:
    return "all" if found.thread == ALL else thread_name(section, found.thread).removeprefix("thread ")


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
