"""Why the tail is slow: events by cause, the slowest one by one, and the system calls that a traced run saw."""

from collections import Counter
from collections.abc import Iterator

from blockyard import units
from blockyard.analysis import causes, syscalls
from blockyard.analysis.figures import RATE_LIMITS_NS, AllocatorFigures
from blockyard.analysis.latency import P999, Operation, View
from blockyard.analysis.syscalls import Trace
from blockyard.report.blocks import Block, Heading, Paragraph
from blockyard.report.latency_tables import limit_words
from blockyard.report.lineup import Lineup, row
from blockyard.report.table import Cell, Column, Table, Unit, marked

_LISTED = 4
_OWN_NOTE = (
    "own work: nothing of the machine was seen; an interruption that the kernel does not show counts there, as "
    "null's row tells"
)
_BROKEN = {name: name.replace(" ", "\n", 1) for name in causes.CLASSES}


def every(lineup: Lineup) -> Iterator[Block]:
    """All of it; without causes a sentence on how to have them."""
    traces = {one.name: lineup.trace(one) for one in lineup.members}
    yield Heading(f"Causes, {lineup.variant}", 3)
    if lineup.looked_into:
        yield Paragraph(looked(lineup))
        yield from tables(lineup)
        yield slow_table(lineup, traces)
    else:
        yield Paragraph(
            "Causes: these runs did not look into their slow events, so nothing tells an interruption from the "
            "allocator's own work; replay with this Blockyard, without --causes-above 0."
        )
    if any(traces.values()):
        yield calls_table(lineup, traces)
        yield from _own_threads(lineup, traces)
    else:
        yield Paragraph(
            "System calls: not traced; 'blockyard replay --trace' adds a traced run of each allocator, which tells "
            "what its own work was."
        )


def tables(lineup: Lineup) -> Iterator[Table]:
    """Where causes are known: events per second above each limit, and what the slowest thousandth is made of."""
    yield from (rate_table(lineup, limit) for limit in RATE_LIMITS_NS)
    yield from (_tail_table(lineup, operation) for operation in (Operation.MALLOC, Operation.FREE))


def looked(lineup: Lineup) -> str:
    """How the causes were found and what looking costs."""
    looking = [run.facts for one in lineup.members for run in one.runs.runs if run.facts.looking.source]
    thresholds = sorted({found.looking.threshold_ns for found in looking if found.looking.threshold_ns is not None})
    sources = sorted({found.looking.source for found in looking})
    costs = [found.looking.ns_a_look for found in looking if found.looking.ns_a_look is not None]
    if not thresholds:
        return "Slow events were looked into, but these runs do not say from what latency on."
    span = (
        f"; a look takes {units.duration(min(costs))} to {units.duration(max(costs))}, after the event and outside its "
        "time"
        if costs
        else ""
    )
    above = " and ".join(units.duration(ns) for ns in thresholds)
    why = "; ".join(sorted({found.looking.reason for found in looking if found.looking.reason}))
    return f"Events of {above} and more were looked into by {' and '.join(sources)}{span}." + (
        f" {why[0].upper()}{why[1:]}." if why else ""
    )


def rate_table(lineup: Lineup, limit_ns: float) -> Table:
    """Events per second above a limit, by cause, mallocs and frees together."""

    def cells(one: AllocatorFigures) -> list[Cell]:
        found = causes.rates(one, limit_ns)
        return [*(found[name] if found else None for name in causes.CLASSES), one.rate_above(limit_ns)]

    columns = [*(Column(name, Unit.RATE) for name in _BROKEN.values()), Column("all", Unit.RATE, True)]
    return lineup.table(
        f"events per second above {limit_words(limit_ns)} by cause",
        columns,
        cells,
        View.AS_RUN.value,
        notes=[_OWN_NOTE],
        asked="all",
    )


def _tail_table(lineup: Lineup, operation: Operation) -> Table:
    """What the slowest thousandth is made of: share of its time by cause."""

    def cells(one: AllocatorFigures) -> list[Cell]:
        edge = one.whole(View.AS_RUN, operation).percentile(P999)
        if edge is None:
            return [None] * (len(causes.CLASSES) + 2)
        found = causes.breakdown(one, operation, edge.value)
        total = sum(part.ns for part in found.values())
        shares = [found[name].ns / total if total else None for name in causes.CLASSES]
        return [edge, *shares, sum(part.events for part in found.values())]

    columns = [*marked("p99.9"), *(Column(name, Unit.SHARE) for name in _BROKEN.values()), Column("events", Unit.COUNT)]
    return lineup.table(
        f"time of the slowest 0.1 % of {operation.value}s by cause", columns, cells, View.AS_RUN.value, asked="p99.9"
    )


def slow_table(lineup: Lineup, traces: dict[str, Trace | None] | None = None) -> Table:
    """Each allocator's slowest events by their slowest repeat, with their least beside it."""
    rows = []
    for one in lineup.members:
        trace = (traces or {}).get(one.name)
        for event in causes.slowest(one, _LISTED):
            why = causes.words(event.causes[event.worst]).replace("the allocator's ", "")
            if trace is not None and (calls := trace.of_event(event.event)):
                why = f"{why}; {syscalls.phrase(calls)}"
            times = [event.latencies_ns[event.worst], min(event.latencies_ns)]
            rows.append(row(one, [event.event, units.call(event.kind, event.size), *times, why]))
    columns = [
        Column("event", Unit.COUNT),
        Column("what"),
        Column("slowest", Unit.NS),
        Column("least", Unit.NS),
        Column("why, when slowest"),
    ]
    return lineup.rows(
        "the slowest events",
        columns,
        rows,
        notes=["least: of all repeats; what is slow in one repeat alone was seldom the allocator"],
    )


def calls_table(lineup: Lineup, traces: dict[str, Trace | None]) -> Table:
    """How often each allocator asked the system for something, in events and outside any."""
    most: Counter[str] = Counter()
    for trace in filter(None, traces.values()):
        most.update(trace.totals())
        most.update(trace.outside())
    names = [name for name, _ in most.most_common(6)]

    def cells(one: AllocatorFigures) -> list[Cell] | None:
        trace = traces[one.name]
        if trace is None:
            return None
        inside, outside = trace.totals(), trace.outside()
        return [
            *(_pair(inside[name], outside[name]) for name in names),
            _pair(sum(inside.values()), sum(outside.values())),
        ]

    return lineup.table(
        "system calls",
        [Column(name, Unit.TEXT) for name in (*names, "all")],
        cells,
        "in events + outside any event",
        "traced run",
        notes=[
            "outside: while threads start and end, and free what is left; the traced run's latencies are never shown"
        ],
    )


def _own_threads(lineup: Lineup, traces: dict[str, Trace | None]) -> Iterator[Block]:
    """What the threads that an allocator started asked of the system, while the program ran and until they settled."""

    def cells(one: AllocatorFigures) -> list[Cell] | None:
        trace = traces[one.name]
        calls = trace.own_threads() if trace is not None else None
        return [sum(calls.values()), syscalls.phrase(calls.most_common(4))] if calls else None

    table = lineup.table(
        "system calls of the allocators' own threads",
        [Column("all", Unit.COUNT, True), Column("most often")],
        cells,
        "traced run",
        notes=["who is not listed started no thread that made one"],
    )
    if table.rows:
        yield table
    else:
        yield Paragraph(f"No allocator's own threads made a system call in the traced runs, {lineup.variant}.")


def _pair(inside: int, outside: int) -> str:
    return f"{inside:,}" + (f" + {outside:,}" if outside else "")
