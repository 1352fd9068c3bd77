"""The pictures of a section: what each shows, and who draws it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from blockyard.allocators import DEFAULTS, PREFAULTED
from blockyard.analysis import causes, memory, passes
from blockyard.analysis.figures import RATE_LIMITS_NS, AllocatorFigures, bad_rows, open_rows
from blockyard.analysis.latency import Operation, View
from blockyard.report import curves, frame_pictures, memory_pictures, row_pictures, scatter, style
from blockyard.report.lineup import Lineup, MeasuredSection, short_name
from blockyard.report.style import Look

_PLANES = {
    (Operation.MALLOC, View.AS_RUN): passes.MALLOC_AS_RUN,
    (Operation.FREE, View.AS_RUN): passes.FREE_AS_RUN,
    (Operation.MALLOC, View.INHERENT): passes.MALLOC_INHERENT,
    (Operation.FREE, View.INHERENT): passes.FREE_INHERENT,
    (Operation.MALLOC, View.ATTRIBUTED): passes.MALLOC_ATTRIBUTED,
    (Operation.FREE, View.ATTRIBUTED): passes.FREE_ATTRIBUTED,
}
OPERATIONS = (Operation.MALLOC, Operation.FREE)
_ALL_EMPHASISED = 4
"""Readers can tell so few lines from each other."""
_MEANINGS = {
    View.AS_RUN: "as-run: all repeats as they came",
    View.ATTRIBUTED: "attributed: without the events that the machine interrupted",
    View.INHERENT: "inherent: each event's least over all repeats",
}


def tasks(one: MeasuredSection, threads: int) -> list[tuple[str, Callable[[], list[Path]]]]:
    """Pictures that one worker draws in one go, by name: the summary ones first, then every event of each allocator: of
    all, or of those that pictures bring out.

    Nothing is drawn of inherent where no allocator has two repeats: it would be as-run's picture under another name.
    """
    one.folder.mkdir(parents=True, exist_ok=True)
    journal = one.section.journal
    found = [(f"{journal} {name}", draw) for lineup in one.lineups() for name, draw in _Drawing(lineup).all()]
    # One frame for all allocators of a section, so that their pictures can be laid side by side.
    end = max((_last_second(each) for each in one.figures), default=1.0)
    frame = _Frame((0.0, end * 1.001), latency_edges(one.figures), _step(one.figures))
    closely = one.figures if one.options.everything else [each for each in one.figures if each.name in one.emphasised]
    return found + [(f"{journal} {each.name}", partial(_scatters, one, each, frame, threads)) for each in closely]


def _drawn(one: MeasuredSection) -> list[View]:
    lone = View.AS_RUN in one.views and all(len(each.runs.runs) == 1 for each in one.figures)
    return [view for view in one.shown if not (view is View.INHERENT and lone)]


def _densities(one: MeasuredSection) -> list[View]:
    """Attributed is drawn only where it was asked for by itself: as-run marks with a cross what it leaves out."""
    if not one.options.views and View.AS_RUN in one.views:
        return [view for view in (View.AS_RUN, View.INHERENT) if view is View.AS_RUN or view in _drawn(one)]
    return [view for view in _drawn(one) if view is not View.ATTRIBUTED or len(one.shown) < len(View)]


def _formats(one: MeasuredSection) -> Sequence[str]:
    return (".png", ".svg") if one.options.everything else (".png",)


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


def looks(one: MeasuredSection) -> dict[str, Look]:
    """How each allocator looks in every picture of a section: emphasised ones in colour, in their variants too."""
    bases = list(dict.fromkeys(each.runs.base for each in one.figures if not each.runs.is_null))
    brought_out = list(dict.fromkeys(name.partition("@")[0] for name in one.emphasised))
    if len(bases) <= _ALL_EMPHASISED:
        brought_out += [base for base in bases if base not in brought_out]

    def look(each: AllocatorFigures) -> Look:
        emphasis = each.runs.base in brought_out
        colour = style.colour(brought_out.index(each.runs.base)) if emphasis else style.OTHERS
        null = each.runs.is_null
        return Look(short_name(each), style.NULL_COLOUR if null else colour, emphasis and not null, null)

    return {each.name: look(each) for each in one.figures}


class _Drawing:
    """The pictures that show all allocators of one variant together."""

    def __init__(self, lineup: Lineup) -> None:
        self.of, self.lineup, self.members = lineup.of, lineup, lineup.everyone
        self.looks = looks(lineup.of)
        self.suffix = "" if lineup.variant == DEFAULTS else f"-{lineup.variant}"
        self.who = (
            "prefaulted: memory populated beforehand, purging off"
            if lineup.variant == PREFAULTED
            else "allocators in their defaults"
        )
        self.how = self.of.section.title.partition(" at ")[2]
        self.competing = [one for one in self.members if not one.runs.is_null]

    def all(self) -> Iterator[tuple[str, Callable[[], list[Path]]]]:
        for view in _drawn(self.of):
            yield "dots", partial(self.latencies, view, row_pictures.dots, "comparison", "From the median to the worst")
            yield "percentiles", partial(self.latencies, view, curves.draw, "percentiles", "Latency by percentile")
        yield "frames", self.frames
        yield "causes", self.causes
        yield "memory", self.memory
        yield "pareto", self.pareto

    def place(self, name: str, title: str, subtitle: str) -> style.Sheet:
        """Where a picture goes and what stands around it."""
        return style.Sheet(
            self.of.folder / f"{name}{self.suffix}",
            f"{title}: {self.of.section.journal}",
            subtitle,
            self.of.header.caption(),
            _formats(self.of),
        )

    def latencies(self, view: View, draw: Callable[..., list[Path]], name: str, title: str) -> list[Path]:
        subtitle = f"{_MEANINGS[view]}; {self.who}; {self.how}"
        panels = self._panels(view)
        return draw(self.place(f"{name}-{view.value}", title, subtitle), panels) if panels else []

    def _panels(self, view: View) -> list[tuple[str, list]]:
        """By operation the distributions that have something in them."""
        found = []
        for operation in OPERATIONS:
            rows = [(self.looks[one.name], one.whole(view, operation)) for one in self.members]
            if kept := [row for row in rows if row[1].samples]:
                found.append((_operation_title(self.members, operation), kept))
        return found

    def frames(self) -> list[Path]:
        cuts, views = self.lineup.cuts, self.of.views
        lines = []
        for one in self.members:
            known = {view: one.frames.of(view) for view in views} if one.frames is not None else {}
            repeats = {view: values for view, values in known.items() if values is not None}
            if repeats and all(values.shape[1] for values in repeats.values()):
                lines.append(frame_pictures.Line.of_repeats(self.looks[one.name], repeats))
        if not lines:
            return []
        grey = "; grey: null" if any(line.look.is_null for line in lines) else ""
        subtitle = f"{cuts.frames.words}; {self.who}\n{frame_pictures.words(views)}; medians of the repeats{grey}"
        sheet = self.place("frames", "Time in the allocator in each frame", subtitle)
        return frame_pictures.draw(sheet, cuts.frames.starts_ns, lines, cuts.phases, cuts.frames.rate_hz)

    def causes(self) -> list[Path]:
        if not any(one.looked_into for one in self.members):
            return []
        panels = []
        for limit in RATE_LIMITS_NS:
            rates = [(self.looks[one.name], causes.rates(one, limit)) for one in self.members]
            if rows := [(look, found) for look, found in rates if found is not None]:
                panels.append((f"above {limit // 1000} us", rows))
        subtitle = f"as-run, mallocs with first touch and frees together; {self.who}; {self.how}"
        sheet = self.place("causes", "What made slow events slow", subtitle)
        return row_pictures.causes(sheet, panels) if panels else []

    def memory(self) -> list[Path]:
        at_ns = memory.times(self.competing)
        found = [series for one in self.competing if (series := memory.series(one, at_ns)) is not None]
        if not found or at_ns[-1] == 0:
            return []
        subtitle = f"resident bytes, the lab's own taken off, median of the repeats; {self.who}; {self.how}"
        return memory_pictures.over_time(self.place("memory", "Memory through the run", subtitle), found, self.looks)

    def pareto(self) -> list[Path]:
        points = memory.pareto(self.competing)
        if not any(point.best for point in points):
            return []
        view = "attributed" if all(one.looked_into for one in self.competing) else "as-run"
        subtitle = (
            f"{view} p99.9 against peak resident, thin lines its interval; diamonds: nobody is lower in both; "
            f"{self.who}"
        )
        sheet = self.place("pareto", "What a short tail costs in memory", subtitle)
        return memory_pictures.pareto(sheet, points, self.looks)


def _scatters(of: MeasuredSection, one: AllocatorFigures, frame: _Frame, threads: int) -> list[Path]:
    """Every event of one allocator, a picture an operation and view."""
    rows, times, edges = open_rows(one.runs, of.options.gross), frame.times_s, frame.latencies_ns
    planes = [None] * passes.PLANES
    for (operation, view), plane in _PLANES.items():
        planes[plane] = scatter.marks_from(one.whole(view, operation))
    rate = one.runs.ticks_per_ns
    try:
        ends = (*(time * 1e9 for time in times), *(edge * rate for edge in edges))
        cells = passes.Frame(scatter.COLUMNS, scatter.ROWS, *ends, one.step_ticks, tuple(planes))
        bins = passes.bins(rows, cells, threads)
    except passes.BadRows as error:
        raise bad_rows(one.runs.runs, error) from None
    written = []
    for operation in OPERATIONS:
        for view in _densities(of):
            found = one.whole(view, operation)
            if not found.samples:
                continue
            sheet = style.Sheet(
                of.folder / f"{one.name}-{operation.value}-{view.value}",
                f"{one.name}: {_operation_title([one], operation)}",
                _density_subtitle(of, one, view, found.samples),
                of.header.caption(one.runs),
                _formats(of),
            )
            written += scatter.draw(
                scatter.Scatter(sheet, bins[_PLANES[operation, view]], found, times, edges, frame.step_ns)
            )
    return written


def _last_second(one: AllocatorFigures) -> float:
    """When its last event started, in seconds of the replay's clock."""
    return max(run.last_start for run in open_rows(one.runs, gross=False)) / 1e9 or 1.0


def _operation_title(figures: Sequence[AllocatorFigures], operation: Operation) -> str:
    touched = operation is Operation.MALLOC and any(one.touched for one in figures)
    return f"{operation.value} and first touch" if touched else operation.value


def _density_subtitle(of: MeasuredSection, one: AllocatorFigures, view: View, samples: int) -> str:
    repeats = len(one.runs.runs)
    meaning = {
        View.AS_RUN: f"as-run, {repeats} repeat{'s' * (repeats != 1)}",
        View.ATTRIBUTED: "attributed",
        View.INHERENT: f"inherent, least of {repeats}",
    }
    return f"{of.section.journal}, {meaning[view]}, {samples:,} events"
