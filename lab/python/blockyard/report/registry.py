"""The sections of a report, each once: text, Markdown, terminal, JSON, CSV and the page loop over this list.

A new section is a function from a line-up to tables in a file of its own, and a row here.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from blockyard.analysis.latency import View
from blockyard.report import cause_tables, frame_tables, latency_tables, memory_tables, site_tables, total_tables
from blockyard.report.blocks import Block, Heading
from blockyard.report.lineup import Lineup
from blockyard.report.table import INTERVALS, Table

Make = Callable[[Lineup], Iterable[Block]]


def _nothing(_: Lineup) -> Iterable[Block]:
    return ()


@dataclass(frozen=True)
class Section:
    """`short` is in every report, `every` takes its place with --all, `page` is what the page shows: `by_view` a table
    for each view, else one whatever the view."""

    short: Make = _nothing
    every: Make = _nothing
    page: Make = _nothing
    by_view: bool = False


def tables(lineup: Lineup) -> Iterator[Block]:
    """All blocks of a line-up, in the order in which they are asked for."""
    options = lineup.of.options
    for section in SECTIONS:
        yield from (section.every if options.everything else section.short)(lineup)
    for view in lineup.of.shown if options.by_size else ():
        yield from latency_tables.by_size(lineup, view)


def of_page(lineup: Lineup) -> Iterator[tuple[str, Table]]:
    """The tables of the page, each with its view, or none; intervals stand in the cells there."""
    for section in SECTIONS:
        for table in section.page(lineup):
            if isinstance(table, Table) and table.first == "allocator" and INTERVALS not in table.circumstances:
                yield table.circumstances[0] if section.by_view else "", table


def _each(views: Callable[[Lineup], Iterable[View]], make: Callable[[Lineup, View], Iterable[Block]]) -> Make:
    return lambda lineup: (block for view in views(lineup) for block in make(lineup, view))


def _shown(lineup: Lineup) -> Iterable[View]:
    return lineup.of.shown


def _totals(lineup: Lineup) -> Iterator[Block]:
    if any(one.runs.totals is not None for one in lineup.competing):
        yield total_tables.table(lineup)


def _rates(lineup: Lineup) -> Iterator[Block]:
    for view in [view for view in lineup.of.shown if view is not View.INHERENT] or [View.AS_RUN]:
        yield latency_tables.rates(lineup, view)


def _causes(lineup: Lineup) -> Iterator[Block]:
    if lineup.looked_into:
        yield cause_tables.rate_table(lineup, 10_000)
        yield cause_tables.slow_table(lineup)


def _causes_of_page(lineup: Lineup) -> Iterator[Block]:
    if lineup.looked_into:
        yield from cause_tables.tables(lineup)
    traces = {one.name: lineup.trace(one) for one in lineup.members}
    if any(traces.values()):
        yield cause_tables.calls_table(lineup, traces)


def _sites_of_page(lineup: Lineup) -> Iterable[Block]:
    return (site_tables.every if lineup.of.options.everything else site_tables.short)(lineup)


def _memory(lineup: Lineup) -> Iterator[Block]:
    yield from list(memory_tables.memory_tables(lineup))[:1]
    yield memory_tables.processor_time(lineup)


def _all_memory(lineup: Lineup) -> Iterator[Block]:
    yield Heading(f"Memory and deferred cost, {lineup.variant}", 3)
    yield from _memory_of_page(lineup)


def _memory_of_page(lineup: Lineup) -> Iterator[Block]:
    yield from memory_tables.memory_tables(lineup)
    yield from memory_tables.deferred_tables(lineup)


SECTIONS = (
    Section(_totals, _totals, _totals),
    Section(
        _each(_shown, frame_tables.short),
        frame_tables.every,
        _each(lambda lineup: lineup.of.views, frame_tables.budget_tables),
        by_view=True,
    ),
    Section(_each(_shown, latency_tables.short), _each(_shown, latency_tables.every)),
    Section(_rates, _rates),
    Section(every=lambda lineup: [latency_tables.costs(lineup)]),
    Section(_causes, cause_tables.every, _causes_of_page),
    Section(site_tables.short, site_tables.every, _sites_of_page),
    Section(_memory, _all_memory, _memory_of_page),
    Section(*[lambda lineup: [latency_tables.fidelity_table(lineup)]] * 3),
)
