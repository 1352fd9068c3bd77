"""Latencies as tables: percentiles with their intervals, how often events are slow, whole runs, and fidelity."""

from collections.abc import Iterator
from operator import attrgetter

from blockyard import units
from blockyard.analysis import fidelity, noise
from blockyard.analysis.figures import RATE_LIMITS_NS, AllocatorFigures
from blockyard.analysis.latency import P999, SIZE_CLASSES, WITH_INTERVAL, Operation, Part, View
from blockyard.analysis.sections import middle
from blockyard.report.lineup import Lineup
from blockyard.report.table import Cell, Column, Ranged, Table, Unit, marked


def short(lineup: Lineup, view: View) -> Iterator[Table]:
    """What a program pays for a malloc with its touch, with intervals, and for a free."""
    for operation in (Operation.MALLOC, Operation.FREE):
        if table := latencies(lineup, view, operation, lineup.part(operation)):
            yield table
            if operation is Operation.MALLOC and (ends := table.intervals()):
                yield ends


def every(lineup: Lineup, view: View) -> Iterator[Table]:
    """Call, touch and both of malloc, realloc apart, free, each with its intervals; only what there was."""
    kinds = [
        (Operation.MALLOC, Part.BOTH),
        (Operation.MALLOC, Part.CALL),
        (Operation.MALLOC, Part.TOUCH),
        (Operation.REALLOC, lineup.part(Operation.REALLOC)),
        (Operation.FREE, Part.CALL),
    ]
    for operation, part in kinds if lineup.touched else kinds[1:2] + kinds[3:]:
        yield from with_intervals(latencies(lineup, view, operation, part))


def by_size(lineup: Lineup, view: View) -> Iterator[Table]:
    """The same for blocks of each size class."""
    for size_class in range(len(SIZE_CLASSES)):
        for operation in (Operation.MALLOC, Operation.FREE):
            yield from with_intervals(latencies(lineup, view, operation, lineup.part(operation), size_class))


def with_intervals(table: Table | None) -> Iterator[Table]:
    if table is not None:
        yield table
        if ends := table.intervals():
            yield ends


def latencies(
    lineup: Lineup, view: View, operation: Operation, part: Part, size_class: int | None = None
) -> Table | None:
    """Best, percentiles and worst; None where there is no such event."""

    def cells(one: AllocatorFigures) -> list[Cell]:
        found = one.distribution(view, operation, part, size_class)
        known = one.known(view, operation, part, size_class)
        return [
            found.best,
            *(ranged(one, found.percentile(percentile), known.get(percentile.label)) for percentile in WITH_INTERVAL),
            found.worst,
        ]

    if not any(one.distribution(view, operation, part, size_class).samples for one in lineup.members):
        return None
    columns = marked("best", *(percentile.label for percentile in WITH_INTERVAL), "worst")
    what = {
        Part.CALL: operation.value,
        Part.TOUCH: f"first touch after {operation.value}",
        Part.BOTH: f"{operation.value} and first touch",
    }[part]
    if part is Part.CALL and operation is not Operation.FREE and lineup.touched:
        what = f"{operation.value}, the call alone"
    size = "" if size_class is None else f", blocks {SIZE_CLASSES[size_class]}"
    by_itself = ["each is a call by itself: among others a fast one takes less, see 'all calls together'"]
    notes = by_itself if any(one.runs.totals is not None for one in lineup.members) else []
    return lineup.table(f"{what}{size}", columns, cells, view.value, asked=P999.label, notes=notes)


def ranged(one: AllocatorFigures, value: Cell, figure: noise.Figure | None, whole: float | None = None) -> Cell:
    """A figure with its interval, where it has one; a time, or its share of a `whole`."""
    ends = one.together.ends(figure)
    if value is None or figure is None or ends is None:
        return value
    low, high = (one.latency(end) if whole is None else end / whole for end in ends)
    return Ranged(value, low, high, figure, one.together.confidence)


def rates(lineup: Lineup, view: View) -> Table:
    """How often per second the program waits, beside the machine's own (`null`). Minima happen in no run: no rates."""
    view = View.AS_RUN if view is View.INHERENT else view

    def cells(one: AllocatorFigures) -> list[Cell]:
        return [*(one.rate_above(limit, view) for limit in RATE_LIMITS_NS), len(one.runs.runs)]

    above = marked(*(f"above {limit_words(limit)}" for limit in RATE_LIMITS_NS), unit=Unit.RATE)
    return lineup.table(
        "slow events per second",
        [*above, Column("repeats", Unit.COUNT)],
        cells,
        view.value,
        "mallocs with touch and frees",
        notes=["null calls no allocator: its slow events are the machine's own"]
        if any(one.runs.is_null for one in lineup.members)
        else ["without null in the campaign, the machine's own share is not known"],
        asked=above[1].name,
    )


def limit_words(limit_ns: float) -> str:
    return units.duration(limit_ns).replace(".00", "").replace(".0", "")


def costs(lineup: Lineup) -> Table:
    """What whole runs took: memory, faults, processor time, and how well they kept their pace. Medians over repeats."""

    def cells(one: AllocatorFigures) -> list[Cell]:
        return [
            *(middle(one.runs.runs, attrgetter(name)) for name in ("peak_resident_bytes", "minor_faults", "cpu_ns")),
            middle(one.runs.runs, attrgetter("late.p99")),
        ]

    return lineup.table(
        "whole runs",
        [
            Column("peak resident", Unit.BYTES, True),
            Column("page faults", Unit.COUNT, True),
            *marked("CPU"),
            Column("late p99", Unit.NS),
        ],
        cells,
        "medians over repeats",
        notes=["page faults and CPU: while the clock ran, without the preamble"],
    )


def fidelity_table(lineup: Lineup) -> Table:
    """Each allocator's runs by their worst, so that nobody needs to guess which figures to trust."""

    def cells(one: AllocatorFigures) -> list[Cell]:
        found = fidelity.worst(one.runs, lineup.of.section)
        facts = [run.facts for run in one.runs.runs]
        known = [[getattr(one.late, which) for one in facts] for which in ("p50", "p99", "p999", "max")]
        late = [max((value for value in values if value is not None), default=None) for values in known]
        names = ("inversions", "lost threads", "timer floor", "busy cores")
        return [found.grade.word, *late, *(found.values[name] for name in names)]

    return lineup.table(
        "fidelity",
        [
            Column("grade"),
            *(Column(name, Unit.NS) for name in ("late\np50", "late\np99", "late\np99.9", "most\nlate")),
            Column("out of\norder", Unit.SHARE),
            Column("lost\npace", Unit.SHARE),
            Column("timer\nfloor", Unit.NS),
            Column("busy\ncores", Unit.RATE),
        ],
        cells,
        "the worst of all repeats",
        absent="not known of these runs",
    )
