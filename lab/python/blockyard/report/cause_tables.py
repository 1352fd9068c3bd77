"""Why the tail is slow: events by cause, the slowest one by one, and the system calls that a traced run saw."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from blockyard.analysis import causes, slow_events, syscalls
from blockyard.analysis.figures import RATE_LIMITS_NS, AllocatorFigures
from blockyard.analysis.latency import P999, Operation, View
from blockyard.analysis.sections import Section
from blockyard.analysis.syscalls import Trace
from blockyard.report import units
from blockyard.report.blocks import Block, Heading, Paragraph, Table
from blockyard.report.comparison import null_rows, short_name

_LISTED = 4
OWN_NOTE = (
    "own work: nothing of the machine was seen; an interruption that the kernel does not show counts there, as "
    "null's row tells"
)
_KINDS = ("malloc", "calloc", "aligned", "free", "realloc")


def blocks(section: Section, figures: Sequence[AllocatorFigures], machine: dict[str, Any], variant: str) -> list[Block]:
    """All of it; without causes a sentence on how to have them."""
    traces = {one.name: syscalls.read(one.runs, machine) for one in figures}
    found: list[Block] = [Heading(f"Causes, {variant}", 3)]
    if not any(one.looked_into for one in figures):
        found.append(
            Paragraph(
                "Causes: these runs did not look into their slow events, so nothing tells an "
                "interruption from the allocator's own work; replay with this Blockyard, without "
                "--causes-above 0."
            )
        )
        return [*found, *_calls(figures, traces, variant)]
    found.append(Paragraph(looked(figures)))
    found += [rate_table(figures, limit, variant) for limit in RATE_LIMITS_NS]
    found += [tail_table(figures, operation, variant) for operation in (Operation.MALLOC, Operation.FREE)]
    found.append(slow_table(section, figures, traces, variant))
    return [*found, *_calls(figures, traces, variant)]


def looked(figures: Sequence[AllocatorFigures]) -> str:
    """How the causes were found and what looking costs."""
    looking = [
        run.facts["looking"] for one in figures for run in one.runs.runs if isinstance(run.facts.get("looking"), dict)
    ]
    thresholds = sorted({ns for one in looking if isinstance(ns := one.get("threshold_ns"), int | float)})
    sources = sorted({str(one.get("source")) for one in looking})
    costs = [one["ns_a_look"] for one in looking if isinstance(one.get("ns_a_look"), int | float)]
    if not thresholds:
        return "Slow events were looked into, but these runs do not say from what latency on."
    span = (
        ""
        if not costs
        else f"; a look takes {units.duration(min(costs))} to {units.duration(max(costs))}, after "
        "the event and outside its time"
    )
    above = " and ".join(units.duration(ns) for ns in thresholds)
    why = "; ".join(sorted({str(one["reason"]) for one in looking if one.get("reason")}))
    return f"Events of {above} and more were looked into by {' and '.join(sources)}{span}." + (
        f" {why[0].upper()}{why[1:]}." if why else ""
    )


def rate_table(figures: Sequence[AllocatorFigures], limit_ns: float, variant: str) -> Table:
    """Events a second above a limit, by cause, mallocs and frees together."""
    rows = []
    for one in figures:
        found = causes.rates(one, limit_ns)
        rows.append(
            [
                short_name(one),
                *(units.rate(found[name] if found else None) for name in causes.CLASSES),
                units.rate(one.rate_above(limit_ns)),
            ]
        )
    limit = units.duration(limit_ns).replace(".00", "").replace(".0", "")
    return Table(
        f"events a second above {limit} by cause, as-run, {variant}",
        ["allocator", *(name.replace(" ", "\n", 1) for name in causes.CLASSES), "all"],
        rows,
        [OWN_NOTE] if limit_ns == RATE_LIMITS_NS[0] else [],
        dim=null_rows(figures),
    )


def tail_table(figures: Sequence[AllocatorFigures], operation: Operation, variant: str) -> Table:
    """What the slowest thousandth is made of: share of its time by cause."""
    rows = []
    for one in figures:
        edge = one.whole(View.AS_RUN, operation).percentile(P999)
        if edge is None:
            rows.append([short_name(one), units.ABSENT, *[units.ABSENT] * (len(causes.CLASSES) + 1)])
            continue
        found = causes.breakdown(one, operation, edge.value)
        total = sum(part.ns for part in found.values())
        rows.append(
            [
                short_name(one),
                units.latency(edge),
                *(f"{100 * found[name].ns / total:.0f} %" if total else units.ABSENT for name in causes.CLASSES),
                units.number(sum(part.events for part in found.values())),
            ]
        )
    return Table(
        f"time of the slowest 0.1 % of {operation.value}s by cause, as-run, {variant}",
        ["allocator", "p99.9", *(name.replace(" ", "\n", 1) for name in causes.CLASSES), "events"],
        rows,
        dim=null_rows(figures),
    )


def slow_table(
    section: Section, figures: Sequence[AllocatorFigures], traces: dict[str, Trace | None], variant: str
) -> Table:
    """Each allocator's slowest events by their slowest repeat, with their least beside it."""
    rows = []
    for one in figures:
        trace = traces[one.name]
        for event in slow_events.of(one, _LISTED):
            why = causes.words(event.causes[event.worst]).replace("the allocator's ", "")
            if trace is not None and (calls := trace.of_event(event.event)):
                why = f"{why}; {syscalls.phrase(calls)}"
            rows.append(
                [
                    short_name(one),
                    f"{event.event:,}",
                    f"{_KINDS[event.kind]} {units.size(event.size)}",
                    units.duration(event.latencies_ns[event.worst]),
                    units.duration(min(event.latencies_ns)),
                    why,
                ]
            )
    return Table(
        f"the slowest events, {variant}",
        ["allocator", "event", "what", "slowest", "least", "why, when slowest"],
        rows,
        ["least: of all repeats; what is slow in one repeat alone was seldom the allocator"],
    )


def _calls(figures: Sequence[AllocatorFigures], traces: dict[str, Trace | None], variant: str) -> list[Block]:
    """How often each allocator asked the system for something, by its traced run."""
    known = [(one, trace) for one in figures if (trace := traces[one.name]) is not None]
    if not known:
        return [
            Paragraph(
                "System calls: not traced; 'blockyard replay --trace' adds a traced run of each allocator, "
                "which tells what its own work was."
            )
        ]
    most: Counter[str] = Counter()
    for _, trace in known:
        most.update(trace.totals())
        most.update(trace.outside())
    names = [name for name, _ in most.most_common(6)]
    rows = []
    for one, trace in known:
        inside, outside = trace.totals(), trace.outside()
        rows.append(
            [
                short_name(one),
                *(_pair(inside[name], outside[name]) for name in names),
                _pair(sum(inside.values()), sum(outside.values())),
            ]
        )
    return [
        Table(
            f"system calls in events + outside any event, traced run, {variant}",
            ["allocator", *names, "all"],
            rows,
            [
                "outside: while threads start and end, and free what is left; the traced run's latencies are "
                "never published"
            ],
            dim=null_rows([one for one, _ in known]),
        ),
        _own_threads(known, variant),
    ]


def _own_threads(known: list[tuple[AllocatorFigures, Trace]], variant: str) -> Table | Paragraph:
    """What the threads that an allocator started asked of the system, while the program ran and until they settled."""
    rows = [
        [short_name(one), units.number(sum(calls.values())), syscalls.phrase(calls.most_common(4))]
        for one, trace in known
        if (calls := trace.own_threads())
    ]
    if not rows:
        return Paragraph(f"No allocator's own threads made a system call in the traced runs, {variant}.")
    return Table(
        f"system calls of the allocators' own threads, traced run, {variant}",
        ["allocator", "all", "most often"],
        rows,
        ["who is not listed started no thread that made one"],
    )


def _pair(inside: int, outside: int) -> str:
    return f"{inside:,}" + (f" + {outside:,}" if outside else "")
