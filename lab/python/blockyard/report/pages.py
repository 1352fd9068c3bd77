"""The pictures of a section: what each shows, and who draws it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from blockyard.analysis import causes, memory, passes
from blockyard.analysis.figures import RATE_LIMITS_NS, AllocatorFigures, bad_rows, open_rows
from blockyard.analysis.latency import Operation, View
from blockyard.analysis.sections import Section
from blockyard.report import cause_pictures, comparison, curves, dots, frame_pictures, memory_pictures, scatter, style
from blockyard.report.header import Header
from blockyard.report.options import ReportOptions
from blockyard.report.style import Look
from blockyard.variants import PREFAULTED

_PLANES = {
    (Operation.MALLOC, View.AS_RUN): passes.MALLOC_AS_RUN,
    (Operation.FREE, View.AS_RUN): passes.FREE_AS_RUN,
    (Operation.MALLOC, View.INHERENT): passes.MALLOC_INHERENT,
    (Operation.FREE, View.INHERENT): passes.FREE_INHERENT,
    (Operation.MALLOC, View.ATTRIBUTED): passes.MALLOC_ATTRIBUTED,
    (Operation.FREE, View.ATTRIBUTED): passes.FREE_ATTRIBUTED,
}
OPERATIONS = (Operation.MALLOC, Operation.FREE)


@dataclass(frozen=True)
class Task:
    """Pictures that one worker draws in one go."""

    name: str
    draw: Callable[[], list[Path]]


def tasks(
    section: Section,
    figures: Sequence[AllocatorFigures],
    lineups: Sequence[tuple[str, list[AllocatorFigures]]],
    closely: Sequence[AllocatorFigures],
    emphasised: Sequence[str],
    header: Header,
    folder: Path,
    options: ReportOptions,
    shown: Sequence[View],
    views: Sequence[View],
    threads: int,
) -> list[Task]:
    """The summary pictures first, then the density of each allocator that is looked at `closely`.

    Of three views the density of attributed is not drawn: as-run marks with a cross what attributed leaves out. Nor is
    anything drawn of inherent where no allocator has two repeats: it would be as-run's picture under another name.
    """
    known = looks(figures, emphasised)
    lone = View.AS_RUN in views and all(len(one.runs.runs) == 1 for one in figures)
    drawn = [view for view in shown if not (view is View.INHERENT and lone)]
    densities = [view for view in drawn if view is not View.ATTRIBUTED or len(shown) < len(View)]
    if not options.views and View.AS_RUN in views and View.AS_RUN not in densities:
        densities = [View.AS_RUN]
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for variant, members in lineups:
        suffix = "" if variant == "defaults" else f"-{variant}"
        for view in drawn:
            found.append(
                Task(
                    f"{section.journal} dots",
                    lambda m=members, v=view, w=variant, s=suffix: _dots(
                        section, known, m, header, folder / f"comparison-{v.value}{s}", v, w
                    ),
                )
            )
            found.append(
                Task(
                    f"{section.journal} percentiles",
                    lambda m=members, v=view, w=variant, s=suffix: _curves(
                        section, known, m, header, folder / f"percentiles-{v.value}{s}", v, w
                    ),
                )
            )
        if any(one.frames is not None for one in members):
            found.append(
                Task(
                    f"{section.journal} frames",
                    lambda m=members, w=variant, s=suffix: _frames(
                        section, known, m, header, folder / f"frames{s}", views, w
                    ),
                )
            )
        if any(one.looked_into for one in members):
            found.append(
                Task(
                    f"{section.journal} causes",
                    lambda m=members, w=variant, s=suffix: _causes(section, known, m, header, folder / f"causes{s}", w),
                )
            )
        found.append(
            Task(
                f"{section.journal} memory",
                lambda m=members, w=variant, s=suffix: _memory(section, known, m, header, folder / f"memory{s}", w),
            )
        )
        found.append(
            Task(
                f"{section.journal} pareto",
                lambda m=members, w=variant, s=suffix: _pareto(section, known, m, header, folder / f"pareto{s}", w),
            )
        )
    # One frame for all allocators of a section, so that their pictures can be laid side by side.
    end = max((last_second(one) for one in figures), default=1.0)
    times = (options.from_s or 0.0, min(options.to_s, end) if options.to_s else end * 1.001)
    frame = _Frame(times, latency_edges(figures), _step(figures))
    if times[0] < times[1]:
        found += [
            Task(
                f"{section.journal} {one.name}",
                lambda one=one: _scatters(section, one, header, folder, options, densities, frame, threads),
            )
            for one in closely
        ]
    return found


@dataclass(frozen=True)
class _Frame:
    """Of density pictures: the edges, and the clock's step."""

    times_s: tuple[float, float]
    latencies_ns: tuple[float, float]
    step_ns: float


def latency_edges(figures: Sequence[AllocatorFigures]) -> tuple[float, float]:
    """Of the latency axis of all allocators of a section."""
    worst = max(
        (
            value.value
            for one in figures
            for operation in OPERATIONS
            if (value := one.whole(View.AS_RUN, operation).worst) is not None
        ),
        default=1.0,
    )
    decade = 10 ** np.floor(np.log10(max(worst, 1000.0)))
    low = style.lower_edge(_step(figures))
    return low, float(decade * next(step for step in (1, 2, 5, 10, 20) if worst * 1.1 <= decade * step))


def _step(figures: Sequence[AllocatorFigures]) -> float:
    """Of the clock, in ns: the coarsest that any allocator met."""
    return max((one.step_ns for one in figures), default=0.0)


def _dots(
    section: Section,
    looks: dict[str, Look],
    members: list[AllocatorFigures],
    header: Header,
    target: Path,
    view: View,
    variant: str,
) -> list[Path]:
    panels = [
        (_operation_title(members, operation), [(looks[one.name], one.whole(view, operation)) for one in members])
        for operation in OPERATIONS
    ]
    kept = _with_samples(panels)
    return (
        dots.draw(
            target,
            f"From the median to the worst: {section.journal}",
            _subtitle(section, view, variant),
            header.caption(),
            kept,
        )
        if kept
        else []
    )


def _curves(
    section: Section,
    looks: dict[str, Look],
    members: list[AllocatorFigures],
    header: Header,
    target: Path,
    view: View,
    variant: str,
) -> list[Path]:
    panels = [
        (_operation_title(members, operation), [(looks[one.name], one.whole(view, operation)) for one in members])
        for operation in OPERATIONS
    ]
    kept = _with_samples(panels)
    return (
        curves.draw(
            target,
            f"Latency by percentile: {section.journal}",
            _subtitle(section, view, variant),
            header.caption(),
            kept,
        )
        if kept
        else []
    )


def _frames(
    section: Section,
    looks: dict[str, Look],
    members: list[AllocatorFigures],
    header: Header,
    target: Path,
    views: Sequence[View],
    variant: str,
) -> list[Path]:
    cuts = members[0].cuts
    lines = []
    for one in members:
        repeats = {
            view: values for view in views if one.frames is not None and (values := one.frames.of(view)) is not None
        }
        if repeats and all(values.shape[1] for values in repeats.values()):
            lines.append(frame_pictures.Line.of_repeats(looks[one.name], repeats))
    if not lines:
        return []
    grey = "; grey: null" if any(line.look.is_null for line in lines) else ""
    return frame_pictures.draw(
        target,
        f"Time in the allocator in each frame: {section.journal}",
        f"{cuts.frames.words}; {_of_variant(variant)}\n{frame_pictures.words(views)}; medians of the repeats{grey}",
        header.caption(),
        cuts.frames.starts_ns,
        lines,
        cuts.phases,
        cuts.frames.rate_hz,
    )


def _causes(
    section: Section,
    looks: dict[str, Look],
    members: list[AllocatorFigures],
    header: Header,
    target: Path,
    variant: str,
) -> list[Path]:
    panels = []
    for limit in RATE_LIMITS_NS:
        rows = [(looks[one.name], found) for one in members if (found := causes.rates(one, limit)) is not None]
        if rows:
            panels.append((f"above {limit // 1000} us", rows))
    return (
        cause_pictures.draw(
            target,
            f"What made slow events slow: {section.journal}",
            f"as-run, mallocs with first touch and frees together; {_of_variant(variant)}; "
            f"{section.title.partition(' at ')[2]}",
            header.caption(),
            panels,
        )
        if panels
        else []
    )


def _memory(
    section: Section,
    looks: dict[str, Look],
    members: list[AllocatorFigures],
    header: Header,
    target: Path,
    variant: str,
) -> list[Path]:
    competing = [one for one in members if not one.runs.is_null]  # null's memory is a buffer of the lab
    at_ns = memory.times(competing)
    found = [told for one in competing if (told := memory.series(one, at_ns)) is not None]
    if not found or at_ns[-1] == 0:
        return []
    return memory_pictures.over_time(
        target,
        f"Memory through the run: {section.journal}",
        f"resident bytes, the lab's own taken off, median of the repeats; {_of_variant(variant)}; "
        f"{section.title.partition(' at ')[2]}",
        header.caption(),
        found,
        looks,
    )


def _pareto(
    section: Section,
    looks: dict[str, Look],
    members: list[AllocatorFigures],
    header: Header,
    target: Path,
    variant: str,
) -> list[Path]:
    points = memory.pareto([one for one in members if not one.runs.is_null])
    if not any(point.best for point in points):
        return []
    view = "attributed" if all(one.looked_into for one in members) else "as-run"
    return memory_pictures.pareto(
        target,
        f"What a short tail costs in memory: {section.journal}",
        f"{view} p99.9 against peak resident, thin lines its 95 % interval; diamonds: nobody is lower in both; "
        f"{_of_variant(variant)}",
        header.caption(),
        points,
        looks,
    )


_ALL_EMPHASISED = 4
"""So few lines can all be told apart."""


def looks(figures: Sequence[AllocatorFigures], emphasised: Sequence[str]) -> dict[str, Look]:
    """How each allocator looks in every picture of a section: `emphasised` ones in colour, in their variants too."""
    bases = list(dict.fromkeys(one.runs.base for one in figures if not one.runs.is_null))
    brought_out = list(dict.fromkeys(name.partition("@")[0] for name in emphasised))
    if len(bases) <= _ALL_EMPHASISED:
        brought_out += [base for base in bases if base not in brought_out]

    def look(one: AllocatorFigures) -> Look:
        emphasis = one.runs.base in brought_out
        colour = style.colour(brought_out.index(one.runs.base)) if emphasis else style.OTHERS
        null = one.runs.is_null
        return Look(comparison.short_name(one), style.NULL_COLOUR if null else colour, emphasis and not null, null)

    return {one.name: look(one) for one in figures}


def _with_samples(panels: list) -> list:
    """Only panels with something in them, and of those only lines with something in them."""
    kept = [(name, [row for row in rows if any(getattr(cell, "samples", 0) for cell in row)]) for name, rows in panels]
    return [(name, rows) for name, rows in kept if rows]


def _scatters(
    section: Section,
    one: AllocatorFigures,
    header: Header,
    folder: Path,
    options: ReportOptions,
    views: Sequence[View],
    frame: _Frame,
    threads: int,
) -> list[Path]:
    rows, times, edges = open_rows(one.runs, options.gross), frame.times_s, frame.latencies_ns
    planes = [None] * passes.PLANES
    for (operation, view), plane in _PLANES.items():
        planes[plane] = scatter.marks_from(one.whole(view, operation))
    rate = one.runs.ticks_per_ns
    try:
        bins = passes.bins(
            rows,
            passes.Frame(
                scatter.COLUMNS,
                scatter.ROWS,
                times[0] * 1e9,
                times[1] * 1e9,
                edges[0] * rate,
                edges[1] * rate,
                one.step_ticks,
                tuple(planes),
            ),
            threads,
        )
    except passes.BadRows as error:
        raise bad_rows(one.runs.runs, error) from None
    zoom = "" if options.from_s is None and options.to_s is None else f"-{times[0]:g}s-{times[1]:g}s"
    written = []
    for operation in OPERATIONS:
        for view in views:
            found = one.whole(view, operation)
            if not found.samples:
                continue
            written += scatter.draw(
                scatter.Scatter(
                    folder / f"{one.name}-{operation.value}-{view.value}{zoom}",
                    f"{one.name}: {_operation_title([one], operation)}",
                    _density_subtitle(section, one, view, found.samples),
                    header.caption(one.runs),
                    bins[_PLANES[operation, view]],
                    found,
                    times,
                    edges,
                    frame.step_ns,
                )
            )
    return written


def last_second(one: AllocatorFigures) -> float:
    """When its last event started, in seconds of the replay's clock."""
    starts = (run.rows["start"] for run in open_rows(one.runs, gross=False) if len(run.rows))
    return max((float(each[-4096:].max()) for each in starts), default=1e9) / 1e9


def _operation_title(figures: Sequence[AllocatorFigures], operation: Operation) -> str:
    touched = operation is Operation.MALLOC and any(one.touched for one in figures)
    return f"{operation.value} and first touch" if touched else operation.value


def _subtitle(section: Section, view: View, variant: str) -> str:
    meaning = {
        View.AS_RUN: "as-run: all repeats as they came",
        View.ATTRIBUTED: "attributed: without the events that the machine interrupted",
        View.INHERENT: "inherent: each event's least over all repeats",
    }[view]
    return f"{meaning}; {_of_variant(variant)}; {section.title.partition(' at ')[2]}"


def _of_variant(variant: str) -> str:
    if variant == PREFAULTED:
        return "prefaulted: memory populated beforehand, purging off"
    return "allocators in their defaults"


def _density_subtitle(section: Section, one: AllocatorFigures, view: View, samples: int) -> str:
    repeats = len(one.runs.runs)
    meaning = {
        View.AS_RUN: f"as-run, {repeats} repeat{'s' * (repeats != 1)}",
        View.ATTRIBUTED: "attributed",
        View.INHERENT: f"inherent, least of {repeats}",
    }
    return f"{section.journal}, {meaning[view]}, {samples:,} events"
