"""The report's tables as the page shows them, one at a time, beside that of latencies, which it computes itself for any
stretch: by view and allocator, with units, so that one renderer sorts and words them all."""

from collections.abc import Iterator, Sequence
from typing import Any

from blockyard.analysis.latency import View
from blockyard.report import cause_tables, frame_tables, latency_tables, memory_tables, site_tables
from blockyard.report.lineup import Lineup
from blockyard.report.table import INTERVALS, Table, raw


def tables(lineup: Lineup, views: Sequence[View]) -> list[dict[str, Any]]:
    """In the order of the choice; what the runs do not have is left out."""
    found: dict[str, dict[str, Any]] = {}
    for view in views:
        for table in frame_tables.budget_tables(lineup, view):
            if INTERVALS not in table.circumstances:
                _add(found, table, view.value)
    for table in _of_no_view(lineup):
        _add(found, table, "")
    return list(found.values())


def _of_no_view(lineup: Lineup) -> Iterator[Table]:
    if lineup.looked_into:
        yield from cause_tables.tables(lineup)
    traces = {one.name: lineup.trace(one) for one in lineup.members}
    if any(traces.values()):
        yield cause_tables.calls_table(lineup, traces)
    sites = site_tables.every if lineup.of.options.everything else site_tables.short
    yield from (one for one in sites(lineup) if isinstance(one, Table) and one.first == "allocator")
    yield from memory_tables.memory_tables(lineup)
    yield from memory_tables.deferred_tables(lineup)
    yield latency_tables.fidelity_table(lineup)


def _add(found: dict[str, dict[str, Any]], table: Table, view: str) -> None:
    """The rows of one view, beside those of the others: of each the allocator, then its cells."""
    made = found.setdefault(
        table.name,
        {
            "name": table.name,
            "words": " ".join(f"{note[0].upper()}{note[1:]}." for note in table.footnotes),
            "columns": [[column.plain, column.unit.value, column.marked] for column in table.columns],
            "rows": {},
        },
    )
    made["rows"][view] = [[row.key, *map(raw, row.cells)] for row in table.rows]
