"""The frame picture: what each allocator takes of every frame over time, against the budgets."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np

from blockyard.analysis.phases import Phases
from blockyard.report import style
from blockyard.report.style import FAINT

WIDTH = 1600
_LEFT, _RIGHT, _PANEL, _GAP, _BOTTOM, _TOP = 118, 232, 380, 74, 128, 128
_COLUMNS = 400
"""Points across: of more frames than that, each point is the worst of its stretch."""
BUDGETS_HZ = (30, 60, 144, 240)
_PHASE_COLOURS = ("#eef0f3", "#ffffff", "#f7f1e6", "#eef5ee")

Line = tuple[str, str, np.ndarray, bool]
"""Name, colour, allocator ns by frame, whether it is `null`."""


def draw(target: Path, title: str, subtitle: str, caption: str, starts_ns: np.ndarray,
         panels: Sequence[tuple[str, list[Line]]], phases: Phases) -> list[Path]:
    """One panel a view, above each other, on one time axis."""
    with matplotlib.rc_context(style.FONT):
        height = _BOTTOM + _TOP + len(panels) * _PANEL + (len(panels) - 1) * _GAP
        page = style.figure(WIDTH, height)
        values = np.concatenate([line[2] for _, lines in panels for line in lines])
        some = values[values > 0]
        low = 10 ** np.floor(np.log10(max(np.quantile(some, 0.02), 100.0))) if len(some) else 100.0
        high = max(float(some.max()) * 1.5 if len(some) else 0.0, 1e9 / BUDGETS_HZ[-1] * 6)
        for number, (name, lines) in enumerate(panels):
            bottom = _BOTTOM + (len(panels) - 1 - number) * (_PANEL + _GAP)
            axis = style.axes(page, _LEFT, bottom, WIDTH - _LEFT - _RIGHT, _PANEL)
            style.latency_axis(axis, low, high, 0.0)
            axis.set_xlim(0, max(float(starts_ns[-1]) / 1e9, 1e-6) if len(starts_ns) else 1)
            axis.tick_params("x", length=0, pad=8)
            axis.set_ylabel("in a frame", labelpad=6)
            axis.text(0.0, 1.03, name, transform=axis.transAxes, fontsize=17, fontweight="bold")
            _phases(axis, phases)
            _budgets(axis)
            _lines(axis, starts_ns, lines)
        axis.set_xlabel("time since the replay's clock started (s)", labelpad=8)
        style.put(page, 28, height - 42, title, fontsize=22, fontweight="bold")
        style.put(page, 28, height - 70, subtitle, fontsize=15, color=FAINT)
        style.foot(page, caption)
        return style.save(page, target)


def worst_of_stretches(starts_ns: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most 400 points: the time at which each stretch begins, and its worst frame."""
    edges = np.unique(np.linspace(0, len(values), min(len(values), _COLUMNS) + 1).astype(int))[:-1]
    return starts_ns[edges], np.maximum.reduceat(values, edges)


def _lines(axis: style.Axes, starts_ns: np.ndarray, lines: list[Line]) -> None:
    low = axis.get_ylim()[0]
    ends = []
    for _, colour, values, is_null in lines:
        times, worst = worst_of_stretches(starts_ns, values)
        axis.plot(times / 1e9, np.maximum(worst, low), color=colour, linewidth=1.0 if is_null else 1.5,
                  alpha=0.8, zorder=2 if is_null else 3, solid_joinstyle="round")
        ends.append(max(float(np.median(worst)), low))
    bottom, top = np.log10(axis.get_ylim())
    heights = [(np.log10(end) - bottom) / (top - bottom) for end in ends]
    places = style.spread(heights, 24 / _PANEL, 0.0, 0.78)
    for (name, colour, _, _), height, place in zip(lines, heights, places, strict=True):
        axis.plot([1.003, 1.012, 1.02], [height, place, place], transform=axis.transAxes, color=colour, linewidth=1.1,
                  clip_on=False)
        axis.text(1.024, place, name, transform=axis.transAxes, va="center", fontsize=14, fontweight="bold",
                  color=colour)


def _budgets(axis: style.Axes) -> None:
    """Whole frames at the usual rates, and a tenth of one at 60."""
    marks = [(1e9 / hz, f"{hz} Hz") for hz in BUDGETS_HZ] + [(1e9 / 60 / 10, "10 % of 60 Hz"),
                                                             (1e9 / 60 / 100, "1 % of 60 Hz")]
    bottom, top = axis.get_ylim()
    for place, (budget, label) in enumerate(marks):
        if bottom < budget < top:
            axis.axhline(budget, color="#c0392b", linewidth=1.0, linestyle=(0, (5, 3)), zorder=1)
            # Side by side, as the upper ones lie close together.
            axis.annotate(label, (0.01 + 0.06 * (place % 4), budget), xycoords=("axes fraction", "data"), fontsize=11,
                          color="#c0392b", va="center", zorder=6,
                          bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.2})


def _phases(axis: style.Axes, phases: Phases) -> None:
    if len(phases.names) < 2:
        return
    for phase in phases.phases:
        shade = _PHASE_COLOURS[phases.names.index(phase.name) % len(_PHASE_COLOURS)]
        axis.axvspan(phase.begin_ns / 1e9, phase.end_ns / 1e9, color=shade, zorder=-1, linewidth=0)
        if phase.seconds > 0.05 * axis.get_xlim()[1]:
            axis.text((phase.begin_ns + phase.end_ns) / 2e9, axis.get_ylim()[1], phase.name, fontsize=11.5, color=FAINT,
                      ha="center", va="top")
