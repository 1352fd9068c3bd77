"""The comparison at a glance: a row an allocator, from its median to its worst, malloc beside free."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

from blockyard.analysis.distribution import Distribution
from blockyard.analysis.latency import P50, P99, P999, P9999
from blockyard.report import style
from blockyard.report.style import Look

WIDTH = 1600
_LEFT, _RIGHT, _GAP, _BOTTOM, _TOP, _ROW = 176, 56, 96, 152, 148, 46
# Light to dark along one blue: the order survives any colour vision and any printer.
_DOTS = ((P50, "#a9cdea", 11), (P99, "#5a9fd4", 11), (P999, "#1f6cb0", 12), (P9999, "#0b3c6f", 12))
_WORST = "#d55e00"

Row = tuple[Look, Distribution]


def draw(sheet: style.Sheet, panels: Sequence[tuple[str, list[Row]]]) -> list[Path]:
    """All panels have the same rows in the same order, and one scale."""
    with matplotlib.rc_context(style.FONT):
        height = _BOTTOM + _TOP + _ROW * len(panels[0][1])
        page = style.figure(WIDTH, height)
        width = (WIDTH - _LEFT - _RIGHT - _GAP * (len(panels) - 1)) / len(panels)
        values = [
            value.value
            for _, rows in panels
            for _, found in rows
            if found.samples
            for value in (found.percentile(P50), found.worst)
            if value is not None
        ]
        step = max(found.step_ns for _, rows in panels for _, found in rows)
        # Labels lie side by side here: a whole decade between "less than a step" and the step.
        low = style.lower_edge(0.0, min(value for value in (*values, step / 4) if value > 0))
        high = max(max(values, default=1.0) * 1.6, low * 100)
        for number, (name, rows) in enumerate(panels):
            axis = style.axes(page, _LEFT + number * (width + _GAP), _BOTTOM, width, _ROW * len(rows))
            _panel(axis, name, rows, low, high, step, names=number == 0)
        _key(page, height)
        return style.finish(page, sheet, (44, 74))


def _panel(axis: style.Axes, name: str, rows: list[Row], low: float, high: float, step: float, names: bool) -> None:
    style.latency_axis(axis, low, high, step, horizontal=True)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.spines["left"].set_visible(False)
    axis.set_yticks(range(len(rows)), [look.name for look, _ in rows] if names else [""] * len(rows), fontsize=16)
    axis.tick_params("y", length=0, pad=10)
    axis.tick_params("x", pad=8)
    axis.set_title(name, loc="left", fontsize=17, fontweight="bold", pad=12)
    axis.set_xlabel("latency", labelpad=6)
    for y, (look, found) in enumerate(rows):
        if y % 2 == 0:
            axis.axhspan(y - 0.5, y + 0.5, color="#f6f7f9", zorder=-1)
        if found.samples:
            _row(axis, y, found, low, look.is_null)
    if names:
        style.name_rows(axis, [look for look, _ in rows])


def _row(axis: style.Axes, y: int, found: Distribution, low: float, is_null: bool) -> None:
    known = [
        (max(value.value, low), colour, size)
        for percentile, colour, size in _DOTS
        if (value := found.percentile(percentile)) is not None
    ]
    worst = max(found.worst.value, low)
    axis.plot(
        [min([worst, *(value for value, _, _ in known)]), worst],
        [y, y],
        color="#c3c9d2",
        linewidth=3,
        zorder=2,
        solid_capstyle="round",
    )
    opacity = 0.45 if is_null else 1.0
    for value, colour, size in known:
        axis.plot(
            [value],
            [y],
            "o",
            color=colour,
            markersize=size,
            markeredgecolor="white",
            alpha=opacity,
            zorder=3,
            clip_on=False,
        )
    axis.plot(
        [worst], [y], "D", color=_WORST, markersize=9, markeredgecolor="white", alpha=opacity, zorder=4, clip_on=False
    )


def _key(page: style.Figure, height: int) -> None:
    axis = style.axes(page, WIDTH - 620, height - 56, 580, 40)
    axis.set_axis_off()
    axis.set_xlim(0, 580)
    axis.set_ylim(0, 40)
    marks = [(percentile.label, colour, "o", size) for percentile, colour, size in _DOTS] + [("worst", _WORST, "D", 9)]
    for place, (label, colour, shape, size) in enumerate(marks):
        x = 20 + place * 116
        axis.plot([x], [20], shape, color=colour, markersize=size, markeredgecolor="white")
        axis.text(x + 14, 20, label, va="center", fontsize=14.5)
