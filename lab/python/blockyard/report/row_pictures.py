"""Pictures with a row an allocator and panels side by side: the comparison at a glance, from the median to the worst,
and of the events above 1, 10 and 100 us how much each cause makes up."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from blockyard import units
from blockyard.analysis.causes import CLASSES, FAULTED, INTERRUPTED, OWN, UNKNOWN, WAITED
from blockyard.analysis.distribution import Distribution
from blockyard.analysis.latency import P50, P99, P999, P9999
from blockyard.report import style
from blockyard.report.style import FAINT, INK, Look

WIDTH = 1600
_LEFT, _RIGHT = 176, 56
# Light to dark along one blue: the order survives any colour vision and any printer.
_DOTS = ((P50, "#a9cdea", 11), (P99, "#5a9fd4", 11), (P999, "#1f6cb0", 12), (P9999, "#0b3c6f", 12))
_WORST = "#d55e00"
_COLOURS = {OWN: "#0072b2", FAULTED: "#e69f00", WAITED: "#b3478f", INTERRUPTED: "#9aa0a8", UNKNOWN: "#e3e6ea"}
_HATCHES = {FAULTED: "//", WAITED: "..", INTERRUPTED: "\\\\"}
"""They differ without colour too."""


def dots(sheet: style.Sheet, panels: Sequence[tuple[str, list[tuple[Look, Distribution]]]]) -> list[Path]:
    """All panels have the same rows in the same order, and one scale."""
    drawn = [found for _, rows in panels for _, found in rows]
    ends = [end for found in drawn if found.samples for end in (found.percentile(P50), found.worst)]
    values = [end.value for end in ends if end is not None]
    step = max(found.step_ns for found in drawn)
    # Labels lie side by side here: a whole decade between "less than a step" and the step.
    low = style.lower_edge(0.0, min(value for value in (*values, step / 4) if value > 0))
    high = max(max(values, default=1.0) * 1.6, low * 100)

    def panel(axis: style.Axes, rows: list[tuple[Look, Distribution]]) -> None:
        style.latency_axis(axis, low, high, step, horizontal=True)
        axis.spines["left"].set_visible(False)
        axis.tick_params("y", length=0, pad=10)
        axis.tick_params("x", pad=8)
        axis.set_xlabel("latency", labelpad=6)
        for y, (look, found) in enumerate(rows):
            if y % 2 == 0:
                axis.axhspan(y - 0.5, y + 0.5, color="#f6f7f9", zorder=-1)
            if found.samples:
                _dots_of(axis, y, found, low, look.is_null)

    page, height = _panels(panels, panel, gap=96, edge=0, bottom=152, top=148, row=46)
    key = _key(page, WIDTH - 620, height - 56, 580, 40)
    marks = [(percentile.label, colour, "o", size) for percentile, colour, size in _DOTS]
    for place, (label, colour, shape, size) in enumerate([*marks, ("worst", _WORST, "D", 9)]):
        x = 20 + place * 116
        key.plot([x], [20], shape, color=colour, markersize=size, markeredgecolor="white")
        key.text(x + 14, 20, label, va="center", fontsize=14.5)
    return style.finish(page, sheet, (44, 74))


def _dots_of(axis: style.Axes, y: int, found: Distribution, low: float, is_null: bool) -> None:
    known = [
        (max(value.value, low), colour, size)
        for percentile, colour, size in _DOTS
        if (value := found.percentile(percentile)) is not None
    ]
    worst = max(found.worst.value, low)
    least = min([worst, *(value for value, _, _ in known)])
    axis.plot([least, worst], [y, y], color="#c3c9d2", linewidth=3, zorder=2, solid_capstyle="round")
    look = {"markeredgecolor": "white", "alpha": 0.45 if is_null else 1.0, "clip_on": False}
    for value, colour, size in known:
        axis.plot([value], [y], "o", color=colour, markersize=size, zorder=3, **look)
    axis.plot([worst], [y], "D", color=_WORST, markersize=9, zorder=4, **look)


def causes(sheet: style.Sheet, panels: Sequence[tuple[str, list[tuple[Look, Mapping[str, float]]]]]) -> list[Path]:
    """A row has its events per second by class: a bar is 100 % of them, and their number stands behind it."""

    def panel(axis: style.Axes, rows: list[tuple[Look, Mapping[str, float]]]) -> None:
        axis.set_xlim(0, 100)
        axis.set_xticks([0, 25, 50, 75, 100], ["0", "25", "50", "75", "100 %"])
        axis.tick_params("both", length=0, pad=8)
        for y, (look, rates) in enumerate(rows):
            total = sum(rates.values())
            left = 0.0
            for kind in CLASSES:
                share = 100 * rates[kind] / total if total else 0.0
                axis.barh(y, share, 0.66, left, alpha=0.55 if look.is_null else 1, **_bar(kind))
                left += share
            ink = FAINT if look.is_null else INK
            axis.text(102, y, f"{units.rate(total)}/s", va="center", fontsize=13.5, color=ink, clip_on=False)

    page, height = _panels(panels, panel, gap=84, edge=84, bottom=120, top=168, row=44)
    key = _key(page, _LEFT, height - 122, WIDTH - _LEFT - _RIGHT, 30)
    for place, kind in enumerate(CLASSES):
        key.barh(15, 30, 20, place * 190, **_bar(kind))
        key.text(place * 190 + 40, 15, kind, va="center", fontsize=14.5)
    return style.finish(page, sheet, (44, 74))


def _bar(kind: str) -> dict[str, Any]:
    return {"color": _COLOURS[kind], "hatch": _HATCHES.get(kind), "edgecolor": "white", "linewidth": 0.8}


def _panels(
    panels: Sequence[tuple[str, list[tuple[Look, Any]]]],
    draw: Callable[[style.Axes, list], None],
    *,
    gap: int,
    edge: int,
    bottom: int,
    top: int,
    row: int,
) -> tuple[style.Figure, int]:
    """A page with the panels side by side, `gap` pixels apart and `edge` from the margin; and its height."""
    height = bottom + top + row * len(panels[0][1])
    page = style.figure(WIDTH, height)
    width = (WIDTH - _LEFT - _RIGHT - gap * (len(panels) - 1) - edge) / len(panels)
    for number, (name, rows) in enumerate(panels):
        axis = style.axes(page, _LEFT + number * (width + gap), bottom, width, row * len(rows))
        draw(axis, rows)
        axis.set_ylim(len(rows) - 0.5, -0.5)
        axis.set_title(name, loc="left", fontsize=17, fontweight="bold", pad=12)
        names = [look.name for look, _ in rows] if number == 0 else [""] * len(rows)
        axis.set_yticks(range(len(rows)), names, fontsize=16)
        if number == 0:
            style.name_rows(axis, [look for look, _ in rows])
    return page, height


def _key(page: style.Figure, left: float, bottom: float, width: float, height: float) -> style.Axes:
    axis = style.axes(page, left, bottom, width, height)
    axis.set_axis_off()
    axis.set_xlim(0, width)
    axis.set_ylim(0, height)
    return axis
