"""The study's text report: the journal over time, of each allocator Best to Worst for malloc and free, and the closing
guideline."""

from collections.abc import Callable, Iterator, Sequence

from blockyard.analysis.distribution import Distribution
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.journal_facts import JournalFacts, JournalRhythm
from blockyard.analysis.latency import P50, P999, PERCENTILES, Operation, Part, View
from blockyard.durations import Nanoseconds
from blockyard.report import units
from blockyard.report.blocks import Block, Heading
from blockyard.report.lineup import UNSUPPORTED, Lineup, short_name
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
        ("Number of mallocs", units.number(journal.mallocs)),
        ("Number of frees", units.number(journal.frees)),
        *([("  of these reallocs", units.number(journal.reallocs))] if journal.reallocs else []),
        ("Total allocation", units.size(journal.total_bytes)),
        ("Max live bytes", units.size(journal.max_live_bytes)),
        ("Average allocation", units.size(journal.average_bytes)),
        ("Median allocation", units.size(journal.median_bytes)),
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
        Row("samples", [units.number(each.samples) for each in found]),
    ]
    return Table(view.value, [Column(title, Unit.NS) for title, _, _ in parts], rows, absent=UNSUPPORTED, first="")


_VIEW_WORDS = {
    View.AS_RUN: "As it ran",
    View.ATTRIBUTED: "Attributed (without the events that the machine interrupted)",
    View.INHERENT: "Inherent (with the machine's noise gone)",
}


def guideline(lineup: Lineup) -> list[str]:
    """Over the allocators of one variant, a finding a line, view by view; `null` is no allocator and left out."""
    contenders = lineup.competing
    if not contenders:
        return ["No guideline: nothing but null was measured."]
    several = {"defaults": "allocators in their defaults", "prefaulted": "allocators, each prefaulted"}
    who = (
        f"{len(contenders)} {several[lineup.variant]}"
        if len(contenders) > 1
        else f"{contenders[0].name}, {lineup.variant}"
    )
    found = [f"As a guideline for {lineup.of.section.journal} ({who}):"]
    for view in lineup.of.views:
        touch = ", malloc with its first touch" if any(one.touched for one in contenders) else ""
        found.append(f"{_VIEW_WORDS[view]}{touch}:")
        for operation in (Operation.MALLOC, Operation.FREE):
            found += _findings(contenders, view, operation)
    return found


def _findings(contenders: Sequence[AllocatorFigures], view: View, operation: Operation) -> Iterator[str]:
    known = [(short_name(one), one.whole(view, operation)) for one in contenders]
    known = [(name, distribution) for name, distribution in known if distribution.samples]
    if not known:
        return
    for name, pick, tail in (
        ("at the least", lambda one: one.best, ""),
        ("median", lambda one: one.percentile(P50), ""),
        ("worst 0.1 %", lambda one: one.percentile(P999), " or more"),
        ("absolute worst", lambda one: one.worst, ""),
    ):
        span = _range(known, pick)
        yield f"{operation.value}, {name}: {span + tail if span else 'unknown (too few events)'}"


def _range(found: list[tuple[str, Distribution]], pick: Callable[[Distribution], Nanoseconds | None]) -> str:
    """`12 ns`, or `12 ns (mimalloc) to 45 ns (dlmalloc)`; empty when no allocator supports it."""
    values = sorted(
        ((value, name) for name, one in found if (value := pick(one)) is not None), key=lambda pair: pair[0].value
    )
    if not values:
        return ""
    (least, first), (most, last) = values[0], values[-1]
    low, high = units.latency(least), units.latency(most)
    return low if low == high else f"{low} ({first}) to {high} ({last})"
