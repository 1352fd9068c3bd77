"""The frame picture: what each allocator takes of every frame over time, against the budgets, a panel an allocator."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from blockyard import units
from blockyard.analysis.latency import BY_TRUST, View
from blockyard.analysis.phases import Phases
from blockyard.report import style
from blockyard.report.style import FAINT, Look

WIDTH = 1600
_LEFT, _RIGHT, _PANEL, _ACROSS, _DOWN, _BOTTOM, _TOP = 118, 40, 210, 26, 50, 128, 168
_MOST_COLUMNS = 3
_PIXELS_A_POINT = 2.4
"""Of more frames than that, each point is the worst of its stretch."""
BUDGETS_HZ = (30, 60, 144, 240)
"""And the rate that frames were cut at, where it is another."""
_BUDGET_COLOUR = "#c0392b"
_PHASE_COLOURS = ("#eef0f3", "#ffffff", "#f7f1e6", "#eef5ee")


@dataclass(frozen=True)
class Line:
    """One allocator: ns by frame in each view that there is, repeats already put together."""

    look: Look
    by_view: Mapping[View, np.ndarray]
    worst_ns: float
    """The worst frame of any repeat, in the line's view: the line itself is of medians, which hide it."""

    @classmethod
    def of_repeats(cls, look: Look, repeats: Mapping[View, np.ndarray]) -> "Line":
        """From ns by repeat and frame in each view."""
        medians = {view: np.median(values, axis=0) for view, values in repeats.items()}
        return cls(look, medians, float(repeats[main_view(repeats)].max(initial=0.0)))

    @property
    def main(self) -> np.ndarray:
        return self.by_view[main_view(self.by_view)]


def main_view(views: Collection[View]) -> View:
    """Which of these views is the line: the others are the edges of what is shaded."""
    return next(view for view in BY_TRUST if view in views)


def words(views: Sequence[View]) -> str:
    """What the worst beside a name, line and shade are, for the subtitle."""
    line = main_view(views)
    shaded = "; shaded: from inherent to as-run" if View.AS_RUN in views and View.INHERENT in views else ""
    return f"worst: of any repeat, {line.value}; line: {line.value}{shaded}"


def draw(
    sheet: style.Sheet, starts_ns: np.ndarray, lines: Sequence[Line], phases: Phases, rate_hz: float
) -> list[Path]:
    """Panels in rows, all on the same axes; `null` is the thin grey line in each. Shares are marked of a frame at
    `rate_hz`."""
    nulls = [line for line in lines if line.look.is_null]
    shown = [line for line in lines if not line.look.is_null] or list(nulls)
    columns = min(_MOST_COLUMNS, len(shown))
    rows = -(-len(shown) // columns)
    width = (WIDTH - _LEFT - _RIGHT - (columns - 1) * _ACROSS) / columns
    low, high = _range(lines, rate_hz)
    height = _BOTTOM + _TOP + rows * _PANEL + (rows - 1) * _DOWN
    page = style.figure(WIDTH, height)
    for place, line in enumerate(shown):
        row, column = divmod(place, columns)
        bottom = height - _TOP - _PANEL - row * (_PANEL + _DOWN)
        axis = style.axes(page, _LEFT + column * (width + _ACROSS), bottom, width, _PANEL)
        style.latency_axis(axis, low, high, 0.0)
        axis.set_xlim(0, max(float(starts_ns[-1]) / 1e9, 1e-6) if len(starts_ns) else 1)
        axis.tick_params("x", length=0, pad=8)
        if column > 0:
            axis.set_yticklabels([])
        if place + columns < len(shown):
            axis.set_xticklabels([])
        _phases(axis, phases)
        _budgets(axis, rate_hz, labelled=column == 0)
        for null in nulls if line not in nulls else ():
            _line(axis, starts_ns, null.main, width, color=style.NULL_COLOUR, linewidth=0.9)
        _allocator(axis, starts_ns, line, width)
    middle = _LEFT + (WIDTH - _LEFT - _RIGHT) / 2
    style.put(page, middle, _BOTTOM - 62, "time since the replay's clock started (s)", ha="center")
    return style.finish(page, sheet, (42, 104))


def worst_of_stretches(starts_ns: np.ndarray, values: np.ndarray, points: int) -> tuple[np.ndarray, np.ndarray]:
    """At most so many points: the time at which each stretch begins, and its worst frame."""
    edges = np.unique(np.linspace(0, len(values), min(len(values), points) + 1).astype(int))[:-1]
    return starts_ns[edges], np.maximum.reduceat(values, edges)


def _range(lines: Sequence[Line], rate_hz: float) -> tuple[float, float]:
    values = np.concatenate([values for line in lines for values in line.by_view.values()])
    some = values[values > 0]
    low = 10 ** np.floor(np.log10(max(np.quantile(some, 0.02), 100.0))) if len(some) else 100.0
    return low, max(float(some.max()) * 1.5 if len(some) else 0.0, max(1e9 / BUDGETS_HZ[-1] * 6, 1e9 / rate_hz * 1.5))


def _allocator(axis: style.Axes, starts_ns: np.ndarray, line: Line, width: float) -> None:
    low = axis.get_ylim()[0]
    if View.AS_RUN in line.by_view and View.INHERENT in line.by_view:
        edges = [
            worst_of_stretches(starts_ns, line.by_view[view], _points(width)) for view in (View.INHERENT, View.AS_RUN)
        ]
        area = [np.maximum(values, low) for _, values in edges]
        axis.fill_between(edges[0][0] / 1e9, *area, color=line.look.ink, alpha=0.25, linewidth=0, zorder=3)
    _line(axis, starts_ns, line.main, width, color=line.look.ink, linewidth=1.4)
    style.name_panel(axis, line.look.name, 1.06, line.look.ink)
    middle, worst = (units.duration(value) for value in (float(np.median(line.main)), line.worst_ns))
    style.say(axis, 1.0, 1.06, f"median {middle}, worst {worst}", fontsize=13, color=FAINT, ha="right")


def _line(axis: style.Axes, starts_ns: np.ndarray, values: np.ndarray, width: float, **look: object) -> None:
    times, worst = worst_of_stretches(starts_ns, values, _points(width))
    axis.plot(times / 1e9, np.maximum(worst, axis.get_ylim()[0]), solid_joinstyle="round", zorder=4, **look)


def _points(width: float) -> int:
    return int(width / _PIXELS_A_POINT)


def budget_marks(rate_hz: float) -> list[tuple[float, str]]:
    """Whole frames at the usual rates and at the one that frames were cut at, and a tenth and a hundredth of that one:
    ns and label."""
    wholes = [(1e9 / hz, f"{hz:g} Hz") for hz in sorted({*BUDGETS_HZ, rate_hz})]
    return wholes + [(1e9 / rate_hz * share, f"{share * 100:g} % of {rate_hz:g} Hz") for share in (0.1, 0.01)]


def _budgets(axis: style.Axes, rate_hz: float, labelled: bool) -> None:
    marks = budget_marks(rate_hz)
    bottom, top = axis.get_ylim()
    for place, (budget, label) in enumerate(marks):
        if bottom < budget < top:
            axis.axhline(budget, color=_BUDGET_COLOUR, linewidth=0.9, linestyle=(0, (5, 3)), zorder=1)
        if labelled and bottom < budget < top:
            # Side by side, as the upper ones lie close together.
            look = {"fontsize": 10, "color": _BUDGET_COLOUR, "va": "bottom", "zorder": 6}
            axis.annotate(label, (0.02 + 0.15 * (place % 5), budget), xycoords=("axes fraction", "data"), **look)


def _phases(axis: style.Axes, phases: Phases) -> None:
    if len(phases.names) < 2:
        return
    for phase in phases.phases:
        shade = _PHASE_COLOURS[phases.names.index(phase.name) % len(_PHASE_COLOURS)]
        axis.axvspan(phase.begin_ns / 1e9, phase.end_ns / 1e9, color=shade, zorder=-1, linewidth=0)
        if phase.seconds > 0.05 * axis.get_xlim()[1]:
            look = {"fontsize": 11.5, "color": FAINT, "ha": "center", "va": "bottom", "zorder": 5}
            axis.text((phase.begin_ns + phase.end_ns) / 2e9, axis.get_ylim()[0], phase.name, **look)
