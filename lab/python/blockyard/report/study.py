"""The study's text report of one allocator: header figures, then Best to Worst for malloc and free."""

from collections.abc import Sequence

from blockyard.analysis.distribution import Distribution
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.journal_facts import JournalFacts, JournalRhythm
from blockyard.analysis.latency import PERCENTILES, Operation, Part, View
from blockyard.report import units
from blockyard.report.blocks import Block, Heading, Table
from blockyard.report.comparison import SATURATED, UNSUPPORTED


def blocks(one: AllocatorFigures, journal: JournalFacts, views: Sequence[View]) -> list[Block]:
    version = f" {one.runs.version}" if one.runs.version else ""
    return [
        Heading(f"{one.name}{version}", 3),
        _header(one, journal, views),
        *(_percentiles(one, view) for view in views),
    ]


def journal_rows(journal: JournalFacts) -> list[list[str]]:
    """The header figures that do not depend on the allocator."""
    live = "Live at the end (cut)" if journal.cut_at_end else "Leaked"
    leaked = units.ABSENT if journal.leaked is None else f"{journal.leaked:,} ({units.size(journal.leaked_bytes)})"
    reallocs = [["  of these reallocs", units.number(journal.reallocs)]] if journal.reallocs else []
    return [
        ["Number of mallocs", units.number(journal.mallocs)],
        ["Number of frees", units.number(journal.frees)],
        *reallocs,
        ["Total allocation", units.size(journal.total_bytes)],
        ["Max live bytes", units.size(journal.max_live_bytes)],
        ["Average allocation", units.size(journal.average_bytes)],
        ["Median allocation", units.size(journal.median_bytes)],
        [live, leaked],
    ]


def rhythm(found: JournalRhythm) -> list[Block]:
    """Once a section: how much the program allocates over time."""
    most = max(found.per_second, default=0.0)
    rows = []
    for place, (all_of, mallocs) in enumerate(zip(found.per_second, found.mallocs_per_second, strict=True)):
        bar = "#" * round(30 * all_of / most) if most else ""
        rows.append([f"{place * found.slice_s:.2f} s", units.rate(all_of), units.rate(mallocs), bar.ljust(30)])
    frames = (
        []
        if found.per_frame is None
        else [f"Operations per frame over the last 60 %: {found.per_frame:,.0f}, mallocs and frees of all threads."]
    )
    return [Table("operations a second, in 20 slices", ["from", "operations", "mallocs", ""], rows, frames)]


def _header(one: AllocatorFigures, journal: JournalFacts, views: Sequence[View]) -> Table:
    rows = journal_rows(journal)
    for view in views:
        mean = one.whole(view, Operation.MALLOC).mean
        rows.append([f"Average Malloc Time ({view.value})", units.latency(mean)])
    return Table("", ["measured", "figure"], rows)


def _percentiles(one: AllocatorFigures, view: View) -> Table:
    parts = [("malloc", Operation.MALLOC, Part.CALL)]
    if one.touched:
        parts += [("touch", Operation.MALLOC, Part.TOUCH), ("malloc+touch", Operation.MALLOC, Part.BOTH)]
    parts.append(("free", Operation.FREE, Part.CALL))
    if one.distribution(view, Operation.REALLOC, Part.CALL).samples:
        parts.append(("realloc", Operation.REALLOC, Part.CALL))
    columns: list[tuple[str, Distribution]] = [
        (title, one.distribution(view, operation, part)) for title, operation, part in parts
    ]
    rows = [["Best", *(units.latency(found.best) for _, found in columns)]]
    rows += [
        [percentile.label, *(units.latency(found.percentile(percentile)) for _, found in columns)]
        for percentile in PERCENTILES
    ]
    rows.append(["Worst", *(units.latency(found.worst) for _, found in columns)])
    rows.append(["samples", *(units.number(found.samples) for _, found in columns)])
    cells = [cell for row in rows for cell in row]
    notes = [UNSUPPORTED] if units.ABSENT in cells else []
    if any(cell.startswith("≥") for cell in cells):
        notes.append(SATURATED)
    return Table(view.value, ["", *(title for title, _ in columns)], rows, notes)
