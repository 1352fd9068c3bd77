"""Who asks for memory in the slow events and the worst frames, and who holds it: by site, where the journal has call
stacks."""

from collections.abc import Iterator

from blockyard import units
from blockyard.allocators import PREFAULTED
from blockyard.analysis import by_site, worst_frames
from blockyard.analysis.by_site import SLOW_NS, BySite, Part
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.latency import View
from blockyard.function_names import shortened
from blockyard.report.blocks import Block, Heading, Paragraph
from blockyard.report.latency_tables import limit_words
from blockyard.report.lineup import Lineup, MeasuredSection, row, short_name
from blockyard.report.table import Column, Name, Row, Table, Unit
from blockyard.sites_tool import is_nameless

_LISTED, _LISTED_ALL = 3, 10
_LONGEST_IN_SENTENCE = 60
_NO_STACKS = (
    "Sites: the journal has no call stacks; record the program again with 'blockyard record', replay that, and the "
    "report says which functions wait."
)
_NOT_KEPT = "Sites: this campaign was replayed without them; replay the journal again with this Blockyard."
_SITE_NOTE = "site: the function that asked, or that freed; malloc's wrappers and the standard library are passed over"


def short(lineup: Lineup) -> Iterator[Block]:
    """Who waits, and who fills the worst frame; without stacks a sentence on how to have them."""
    joined = lineup.of.by_site
    if joined is None:
        yield Paragraph(_NO_STACKS if lineup.of.section.facts.stacks is False else _NOT_KEPT)
        return
    yield slow_table(lineup, joined, _LISTED)
    yield from _frame_tables(lineup, joined)


def every(lineup: Lineup) -> Iterator[Block]:
    """All of it; what the program itself holds once."""
    yield Heading(f"Sites, {lineup.variant}", 3)
    joined = lineup.of.by_site
    if joined is None:
        yield from short(lineup)
        return
    yield slow_table(lineup, joined, _LISTED_ALL)
    yield from _frame_tables(lineup, joined)
    yield tail_table(lineup, joined)
    yield pages_table(lineup, joined)
    if lineup.variant != PREFAULTED:
        yield memory_table(lineup, joined)


def who(of: MeasuredSection) -> str:
    """Who waits on the program's own allocator, and how long on the one with the shortest tail. Empty where it is not
    known."""
    joined, own = of.by_site, of.own
    if joined is None or own is None:
        return ""
    found = joined.slow(own)
    limit = limit_words(SLOW_NS)
    if not found:
        return f"Nobody waits on {own.name}: no event takes more than {limit}."
    first = found[0]
    other = next((one for one in of.figures if one is not own and not one.runs.is_null), None)
    theirs = joined.slow(other) if other else []
    there = next((_a_run(other, part) for part in theirs if part.site == first.site), 0.0)
    beside = f"; {units.duration(there) if there else 'none'} on {short_name(other)}" if other else ""
    name = joined.groups.names[first.site]
    asker = shortened(_name(joined, first.site), _LONGEST_IN_SENTENCE)
    module, plus, place = name.rpartition("+")
    if plus and is_nameless(name):
        asker = f"An unnamed function of {module} (+{place})"
    return (
        f"{asker} waits longest on {own.name}: {units.share(first.share)} of the time in events above {limit} "
        f"({units.duration(_a_run(own, first))} a run{beside})."
    )


def how_to_name(of: MeasuredSection) -> str:
    """What to do when who() knows an address only."""
    joined, own = of.by_site, of.own
    found = joined.slow(own) if joined is not None and own is not None else []
    name = joined.groups.names[found[0].site] if found else ""
    if "+" not in name or not is_nameless(name):
        return ""
    journal = of.section.facts.path
    return (
        f"To name it, install debug symbols (-dbgsym), run 'blockyard names {journal}' (--debug-dir DIR for symbols "
        "elsewhere) and replay again; or build with -g and record again."
    )


def slow_table(lineup: Lineup, joined: BySite, listed: int) -> Table:
    """Of each allocator the sites that spend most time in slow events."""
    rows = [
        row(one, [part.events / len(one.runs.runs), _a_run(one, part), part.share, _name(joined, part.site)])
        for one in lineup.competing
        for part in joined.slow(one)[:listed]
    ]
    columns = [Column("events\na run", Unit.RATE), Column("time\na run", Unit.NS), *_SHARE_AND_SITE]
    title = f"who waits: time in events above {limit_words(SLOW_NS)} by site"
    return lineup.rows(title, columns, rows, _view(lineup).value, notes=[_SITE_NOTE], said=who(lineup.of))


def _frame_tables(lineup: Lineup, joined: BySite) -> Iterator[Table]:
    """Of each allocator's worst frame the sites that fill it; none where there are no frames."""
    rows = [
        row(one, [f"{frame.start_ns / 1e9:.3f}", part.events, part.ns, part.share, _name(joined, part.site)])
        for one in lineup.competing
        for frame in worst_frames.of(one, 1)
        for part in joined.in_frame(one, frame)[:_LISTED]
    ]
    if rows:
        columns = [Column("at s"), Column("events", Unit.COUNT), Column("time", Unit.NS), *_SHARE_AND_SITE]
        yield lineup.rows("who fills the worst frame, by site", columns, rows, View.AS_RUN.value, notes=[_SITE_NOTE])


def tail_table(lineup: Lineup, joined: BySite) -> Table:
    """The tail of each of the busiest sites, mallocs with their touch and frees together."""
    rows = [
        row(one, [tail.events, *map(one.latency, tail.latencies_ns), _name(joined, tail.site)])
        for one in lineup.competing
        for tail in joined.tails(one, _LISTED_ALL)
    ]
    columns = [Column("events\na run", Unit.COUNT), *(Column(name, Unit.NS) for name in ("p50", "p99.9", "worst"))]
    return lineup.rows("p99.9 by site", [*columns, _SITE], rows, _view(lineup).value, notes=[_SITE_NOTE])


def pages_table(lineup: Lineup, joined: BySite) -> Table:
    """Of each allocator the sites that alone keep pages which are mostly free: external fragmentation by site."""
    rows = [
        row(one, [found.pages, found.free_bytes, found.bytes, found.blocks, _name(joined, found.site)])
        for one in lineup.competing
        for found in joined.pinned(one)[:_LISTED]
    ]
    columns = [
        Column("pages", Unit.COUNT),
        Column("free in\nthem", Unit.BYTES),
        Column("in use", Unit.BYTES),
        Column("blocks", Unit.COUNT),
        _SITE,
    ]
    return lineup.rows(
        "who pins pages: those that hold blocks of one site alone",
        columns,
        rows,
        "at the end",
        "first repeat",
        notes=["free: asked for by nobody, the allocator's own headers and rounding included"],
    )


def memory_table(lineup: Lineup, joined: BySite) -> Table:
    """Who holds memory when the program holds most, and at the end of the stretch: bytes asked for."""
    held = by_site.held(joined)
    peak, end = sum(one.peak_bytes for one in held), sum(one.end_bytes for one in held)
    rows = [
        Row(
            _name(joined, one.site),
            [one.peak_bytes, one.peak_bytes / peak if peak else None, one.peak_blocks, one.end_bytes, one.end_blocks],
        )
        for one in held[:_LISTED_ALL]
    ]
    columns = [
        Column("at peak", Unit.BYTES),
        Column("share", Unit.SHARE),
        Column("blocks", Unit.COUNT),
        Column("at end", Unit.BYTES),
        Column("blocks\nat end", Unit.COUNT),
    ]
    circumstances = (f"{units.size(peak)} at the peak", f"{units.size(end)} at the end")
    return Table("memory by site", columns, rows, circumstances, first="site")


_SITE = Column("site")
_SHARE_AND_SITE = (Column("share", Unit.SHARE), _SITE)


def _view(lineup: Lineup) -> View:
    return View.ATTRIBUTED if lineup.looked_into else View.AS_RUN


def _a_run(one: AllocatorFigures, part: Part) -> float:
    return part.ns / len(one.runs.runs)


def _name(joined: BySite, site: int) -> Name:
    """The function, with its module where several have one of that name."""
    groups = joined.groups
    function = groups.names[site]
    return Name(function if groups.names.count(function) == 1 else f"{function} ({groups.modules[site]})")
