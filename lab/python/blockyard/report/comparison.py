"""Tables that put the allocators of one section side by side."""

from collections.abc import Callable, Sequence
from statistics import median

from blockyard.analysis import fidelity
from blockyard.analysis.bootstrap import Interval
from blockyard.analysis.distribution import Distribution, Nanoseconds
from blockyard.analysis.figures import RATE_LIMITS_NS, AllocatorFigures
from blockyard.analysis.latency import (
    P50,
    P99,
    P999,
    P9999,
    P99999,
    SAMPLES_BEYOND,
    SIZE_CLASSES,
    Operation,
    Part,
    Percentile,
    View,
)
from blockyard.report import units
from blockyard.report.blocks import Table
from blockyard.variants import PREFAULTED

COLUMNS = (P50, P99, P999, P9999, P99999)
Pick = Callable[[Distribution], Nanoseconds | None]


def _picker(percentile: Percentile) -> Pick:
    return lambda found: found.percentile(percentile)


UNSUPPORTED = f"{units.ABSENT} fewer than {SAMPLES_BEYOND} samples lie beyond this percentile: it is not printed"
SATURATED = "≥ the measurement could hold no more: it took at least that long"


def variants(figures: Sequence[AllocatorFigures]) -> list[tuple[str, list[AllocatorFigures]]]:
    """The allocators in their defaults, and their prefaulted variants: tables of their own. `null` stands in both."""
    defaults = [one for one in figures if one.runs.variant != PREFAULTED]
    prefaulted = [one for one in figures if one.runs.variant == PREFAULTED]
    found = []
    if defaults:
        found.append(("defaults", ranked(defaults)))
    if prefaulted:
        found.append((PREFAULTED, ranked(prefaulted + [one for one in defaults if one.runs.is_null])))
    return found


def ranked(figures: Sequence[AllocatorFigures]) -> list[AllocatorFigures]:
    """By the as-run malloc's p99.9 (a lower percentile where that is not supported), `null` last: one order for all."""
    wholes = [one.whole(View.AS_RUN, Operation.MALLOC) for one in figures]
    by = next(
        (
            percentile
            for percentile in (P999, P99, P50)
            if all(whole.percentile(percentile) is not None for whole in wholes)
        ),
        None,
    )

    def key(one: AllocatorFigures) -> tuple[bool, float]:
        value = one.whole(View.AS_RUN, Operation.MALLOC).percentile(by) if by else None
        return one.runs.is_null, value.value if value else 0.0

    return sorted(figures, key=key)


def short_name(one: AllocatorFigures) -> str:
    """The name within its variant's own table; `*` for one that took a lock around every call."""
    name = one.name.removesuffix(f"@{PREFAULTED}")
    return f"{name}*" if one.runs.needs_lock else name


def short(figures: Sequence[AllocatorFigures], views: Sequence[View], variant: str) -> list[Table]:
    """What a program pays for a malloc with its touch, with intervals, and for a free."""
    return [
        make(figures, view, operation, _part(figures, operation), variant)
        for view in views
        for operation, make in ((Operation.MALLOC, latencies), (Operation.MALLOC, _tail), (Operation.FREE, latencies))
        if any(one.whole(view, operation).samples for one in figures)
    ]


def all_latencies(figures: Sequence[AllocatorFigures], views: Sequence[View], variant: str) -> list[Table]:
    """Call, touch and both of malloc, realloc apart, free; in each view. What nothing was measured of is left out."""
    return [
        latencies(figures, view, operation, part, variant)
        for operation, part in _kinds(figures)
        for view in views
        if any(one.distribution(view, operation, part).samples for one in figures)
    ]


def _kinds(figures: Sequence[AllocatorFigures]) -> list[tuple[Operation, Part]]:
    if _whole_part(figures) is Part.CALL:
        return [(Operation.MALLOC, Part.CALL), (Operation.REALLOC, Part.CALL), (Operation.FREE, Part.CALL)]
    return [
        (Operation.MALLOC, Part.BOTH),
        (Operation.MALLOC, Part.CALL),
        (Operation.MALLOC, Part.TOUCH),
        (Operation.REALLOC, Part.BOTH),
        (Operation.FREE, Part.CALL),
    ]


def _what(figures: Sequence[AllocatorFigures], operation: Operation, part: Part, size_class: int | None) -> str:
    what = {
        Part.CALL: operation.value,
        Part.TOUCH: f"first touch after {operation.value}",
        Part.BOTH: f"{operation.value} and first touch",
    }[part]
    if part is Part.CALL and operation is not Operation.FREE and _whole_part(figures) is Part.BOTH:
        what = f"{operation.value}, the call alone"
    return what if size_class is None else f"{what}, blocks {SIZE_CLASSES[size_class]}"


def tails(figures: Sequence[AllocatorFigures], views: Sequence[View], variant: str) -> list[Table]:
    """The 95 % bootstrap interval of every tail percentile of those tables, in the same order."""
    return [
        _tail(figures, view, operation, part, variant)
        for operation, part in _kinds(figures)
        for view in views
        if any(one.distribution(view, operation, part).samples for one in figures)
    ]


def _tail(
    figures: Sequence[AllocatorFigures],
    view: View,
    operation: Operation,
    part: Part,
    variant: str,
    size_class: int | None = None,
) -> Table:
    found = [one.intervals(view, operation, part, size_class) for one in figures]
    rows = [
        [short_name(one), *(units.interval(ends[percentile.label]) for percentile in COLUMNS[1:])]
        for one, ends in zip(figures, found, strict=True)
    ]
    return Table(
        f"{_what(figures, operation, part, size_class)}: 95 % intervals, {view.value}, {variant}",
        ["allocator", *(percentile.label for percentile in COLUMNS[1:])],
        rows,
        _footnotes(rows, figures),
        dim=null_rows(figures),
    )


def by_size(figures: Sequence[AllocatorFigures], views: Sequence[View], variant: str) -> list[Table]:
    """The same for blocks of each size class, each table followed by its intervals."""
    parts = {Operation.MALLOC: _whole_part(figures), Operation.FREE: Part.CALL}
    return [
        make(figures, view, operation, part, variant, size_class)
        for size_class in range(len(SIZE_CLASSES))
        for operation, part in parts.items()
        for view in views
        if any(one.distribution(view, operation, Part.CALL, size_class).samples for one in figures)
        for make in (latencies, _tail)
    ]


def latencies(
    figures: Sequence[AllocatorFigures],
    view: View,
    operation: Operation,
    part: Part,
    variant: str,
    size_class: int | None = None,
) -> Table:
    distributions = [one.distribution(view, operation, part, size_class) for one in figures]
    rows = [
        [
            short_name(one),
            units.latency(found.best),
            *(units.latency(found.percentile(p)) for p in COLUMNS),
            units.latency(found.worst),
        ]
        for one, found in zip(figures, distributions, strict=True)
    ]
    return Table(
        f"{_what(figures, operation, part, size_class)}: {view.value}, {variant}",
        ["allocator", "best", *(percentile.label for percentile in COLUMNS), "worst"],
        rows,
        _footnotes(rows, figures),
        _lowest(figures, distributions, [one.intervals(view, operation, part, size_class) for one in figures]),
        null_rows(figures),
    )


def rates(figures: Sequence[AllocatorFigures], variant: str, view: View = View.AS_RUN) -> Table:
    """How often a second the program waits, beside the machine's own (`null`). Minima happen in no run: no rates."""
    rows = []
    for one in figures:
        repeats = len(one.runs.runs)
        rows.append(
            [short_name(one), *(units.rate(one.rate_above(limit, view)) for limit in RATE_LIMITS_NS), str(repeats)]
        )
    notes = (
        ["null calls no allocator: its slow events are the machine's own"]
        if any(one.runs.is_null for one in figures)
        else ["without null in the campaign, the machine's own share is not known"]
    )
    return Table(
        f"slow events a second: {view.value}, mallocs with touch and frees, {variant}",
        [
            "allocator",
            *(f"above {units.duration(limit).replace('.00', '').replace('.0', '')}" for limit in RATE_LIMITS_NS),
            "repeats",
        ],
        rows,
        notes,
        dim=null_rows(figures),
    )


def costs(figures: Sequence[AllocatorFigures], variant: str) -> Table:
    """What whole runs took: memory, faults, processor time, and how well they kept their pace. Medians over repeats."""

    def middle(one: AllocatorFigures, pick: Callable[[dict], float | None], show: Callable[[float], str]) -> str:
        known = [value for run in one.runs.runs if isinstance(value := pick(run.facts), int | float)]
        return show(median(known)) if known else units.ABSENT

    rows = []
    for one in figures:
        compared = fidelity.timing_distortion(one.runs)
        rows.append(
            [
                short_name(one),
                middle(one, lambda facts: facts.get("peak_resident_bytes"), units.size),
                middle(one, lambda facts: facts.get("minor_faults"), lambda value: units.number(round(value))),
                middle(one, lambda facts: facts.get("cpu_ns"), units.duration),
                units.duration(compared[1]) if compared else units.ABSENT,
                middle(one, lambda facts: (facts.get("lateness_ns") or {}).get("p99"), units.duration),
            ]
        )
    return Table(
        f"whole runs: medians over repeats, {variant}",
        ["allocator", "peak resident", "page faults", "CPU", "CPU untimed", "late p99"],
        rows,
        [
            "page faults and CPU: while the clock ran, without the preamble",
            *(
                []
                if any(row[4] != units.ABSENT for row in rows)
                else [f"{units.ABSENT} no untimed runs in this campaign (replay --untimed)"]
            ),
        ],
        dim=null_rows(figures),
    )


def fidelity_table(figures: Sequence[AllocatorFigures], pace: str, variant: str) -> Table:
    """Each allocator's runs by their worst, so that nobody needs to guess which figures to trust."""
    rows = []
    for one in figures:
        found = fidelity.worst(one.runs, pace)
        late = [_worst_late(one, key) for key in ("p50", "p99", "p999", "max")]
        rows.append(
            [
                short_name(one),
                found.grade.word,
                *late,
                _shown(found.values["inversions"], "{:.1%}"),
                _shown(found.values["lost threads"], "{:.0%}"),
                _shown(found.values["timer floor"], "{:.0f} ns"),
                _shown(found.values["busy cores"], "{:.2f}"),
            ]
        )
    return Table(
        f"fidelity: the worst of all repeats, {variant}",
        [
            "allocator",
            "grade",
            "late\np50",
            "\np99",
            "\np99.9",
            "\nmost",
            "in-\nver-\nsions",
            "lost\npace",
            "timer\nfloor",
            "busy\ncores",
        ],
        rows,
        [f"{units.ABSENT} not known of these runs"] if any(units.ABSENT in row for row in rows) else [],
        dim=null_rows(figures),
    )


def _worst_late(one: AllocatorFigures, key: str) -> str:
    told = [
        value
        for run in one.runs.runs
        if isinstance(run.facts.get("lateness_ns"), dict)
        and isinstance(value := run.facts["lateness_ns"].get(key), int | float)
    ]
    return units.duration(max(told)) if told else units.ABSENT


def _shown(value: float | None, form: str) -> str:
    return units.ABSENT if value is None else form.format(value)


def _part(figures: Sequence[AllocatorFigures], operation: Operation) -> Part:
    """What a program pays for one: a free has no touch."""
    return Part.CALL if operation is Operation.FREE else _whole_part(figures)


def _whole_part(figures: Sequence[AllocatorFigures]) -> Part:
    return Part.BOTH if any(one.touched for one in figures) else Part.CALL


def _footnotes(rows: list[list[str]], figures: Sequence[AllocatorFigures]) -> list[str]:
    cells = [cell for row in rows for cell in row]
    notes = [UNSUPPORTED] if units.ABSENT in cells else []
    if any(cell.startswith("≥") for cell in cells):
        notes.append(SATURATED)
    if any(one.runs.needs_lock for one in figures):
        notes.append("* not thread-safe: a lock around every call is part of its figures")
    return notes


Ends = dict[str, Interval | None]


def _lowest(
    figures: Sequence[AllocatorFigures], distributions: list[Distribution], intervals: list[Ends]
) -> frozenset[tuple[int, int]]:
    pickers = [
        ("best", Distribution.best.fget),
        *((percentile.label, _picker(percentile)) for percentile in COLUMNS),
        ("worst", Distribution.worst.fget),
    ]
    return frozenset(
        (y, x)
        for x, (label, pick) in enumerate(pickers, start=1)
        for y in _lowest_of(figures, distributions, pick, [ends.get(label) for ends in intervals])
    )


def _lowest_of(
    figures: Sequence[AllocatorFigures], distributions: list[Distribution], pick: Pick, ends: list[Interval | None]
) -> list[int]:
    """Rows with the lowest figure, or within 2 % or one tick of it, or with an interval that overlaps with its own (no
    claim is made below that), `null` left out."""
    values = {
        y: value.value
        for y, one in enumerate(figures)
        if not one.runs.is_null and (value := pick(distributions[y])) is not None
    }
    if len(values) < 2:
        return []
    least = min(values.values())
    tick = 1 / figures[0].runs.ticks_per_ns
    first = ends[min(values, key=values.__getitem__)]
    return [
        y
        for y, value in values.items()
        if value <= max(least * 1.02, least + tick)
        or (first is not None and (own := ends[y]) is not None and own.overlaps(first))
    ]


def null_rows(figures: Sequence[AllocatorFigures]) -> frozenset[int]:
    """Rows of `null`, which doesn't compete."""
    return frozenset(place for place, one in enumerate(figures) if one.runs.is_null)
