"""The study's text report: the journal over time, and of each allocator Best to Worst for malloc and free."""

from collections.abc import Sequence

from blockyard import units
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.journal_facts import JournalFacts, JournalRhythm
from blockyard.analysis.latency import PERCENTILES, Operation, Part, View
from blockyard.report.blocks import Block, Heading
from blockyard.report.lineup import UNSUPPORTED
from blockyard.report.table import Column, Row, Table, Unit, words


def blocks(one: AllocatorFigures, journal: JournalFacts, views: Sequence[View]) -> list[Block]:
    version = f" {one.runs.version}" if one.runs.version else ""
    return [
        Heading(f"{one.name}{version}", 3),
        _header(one, journal, views),
        *(_percentiles(one, view) for view in views),
    ]


def _journal_rows(journal: JournalFacts) -> list[Row]:
    """The header figures that do not depend on the allocator."""
    live = "Live at the end (cut)" if journal.cut_at_end else "Leaked"
    leaked = None if journal.leaked is None else f"{journal.leaked:,} ({units.size(journal.leaked_bytes)})"
    rows = [
        ("Number of mallocs", words(journal.mallocs, Unit.COUNT)),
        ("Number of frees", words(journal.frees, Unit.COUNT)),
        *([("  of these reallocs", words(journal.reallocs, Unit.COUNT))] if journal.reallocs else []),
        ("Total allocation", words(journal.total_bytes, Unit.BYTES)),
        ("Max live bytes", words(journal.max_live_bytes, Unit.BYTES)),
        ("Average allocation", words(journal.average_bytes, Unit.BYTES)),
        ("Median allocation", words(journal.median_bytes, Unit.BYTES)),
        (live, leaked),
    ]
    return [Row(name, [value]) for name, value in rows]


def rhythm(found: JournalRhythm) -> Table:
    """Once a section: how much the program allocates over time."""
    most = max(found.per_second, default=0.0)
    rows = [
        Row(
            f"{place * found.slice_s:.2f} s",
            [all_of, mallocs, ("#" * round(30 * all_of / most if most else 0)).ljust(30)],
        )
        for place, (all_of, mallocs) in enumerate(zip(found.per_second, found.mallocs_per_second, strict=True))
    ]
    notes = (
        []
        if found.per_frame is None
        else [f"Operations per frame over the last 60 %: {found.per_frame:,.0f}, mallocs and frees of all threads."]
    )
    columns = [Column("operations", Unit.RATE), Column("mallocs", Unit.RATE), Column("")]
    return Table("operations per second, in 20 slices", columns, rows, notes=notes, first="from")


def _header(one: AllocatorFigures, journal: JournalFacts, views: Sequence[View]) -> Table:
    means = [
        Row(f"Average Malloc Time ({view.value})", [words(one.whole(view, Operation.MALLOC).mean, Unit.NS)])
        for view in views
    ]
    return Table("", [Column("figure")], [*_journal_rows(journal), *means], first="measured")


def _percentiles(one: AllocatorFigures, view: View) -> Table:
    parts = [("malloc", Operation.MALLOC, Part.CALL)]
    if one.touched:
        parts += [("touch", Operation.MALLOC, Part.TOUCH), ("malloc+touch", Operation.MALLOC, Part.BOTH)]
    parts.append(("free", Operation.FREE, Part.CALL))
    if one.distribution(view, Operation.REALLOC, Part.CALL).samples:
        parts.append(("realloc", Operation.REALLOC, Part.CALL))
    found = [one.distribution(view, operation, part) for _, operation, part in parts]
    rows = [
        Row("Best", [each.best for each in found]),
        *(Row(percentile.label, [each.percentile(percentile) for each in found]) for percentile in PERCENTILES),
        Row("Worst", [each.worst for each in found]),
        Row("samples", [words(each.samples, Unit.COUNT) for each in found]),
    ]
    return Table(view.value, [Column(title, Unit.NS) for title, _, _ in parts], rows, absent=UNSUPPORTED, first="")
