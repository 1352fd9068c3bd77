"""The cause picture: of the events above 1, 10 and 100 us, how much each cause makes up, a bar an allocator."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib

from blockyard.analysis.causes import CLASSES, FAULTED, INTERRUPTED, OWN, UNKNOWN, WAITED
from blockyard.report import style, units
from blockyard.report.style import FAINT, INK, Look

WIDTH = 1600
_LEFT, _RIGHT, _GAP, _BOTTOM, _TOP, _ROW = 176, 56, 84, 120, 168, 44
_COLOURS = {OWN: "#0072b2", FAULTED: "#e69f00", WAITED: "#b3478f", INTERRUPTED: "#9aa0a8", UNKNOWN: "#e3e6ea"}
_HATCHES = {FAULTED: "//", WAITED: "..", INTERRUPTED: "\\\\"}
"""They differ without colour too."""

Row = tuple[Look, Mapping[str, float]]
"""Events per second by class."""


def draw(sheet: style.Sheet, panels: Sequence[tuple[str, list[Row]]]) -> list[Path]:
    """Panels side by side; a bar is 100 % of its events, whose number per second stands behind it."""
    with matplotlib.rc_context({**style.FONT, "hatch.linewidth": 0.7, "hatch.color": "#ffffff"}):
        height = _BOTTOM + _TOP + _ROW * len(panels[0][1])
        page = style.figure(WIDTH, height)
        width = (WIDTH - _LEFT - _RIGHT - _GAP * len(panels)) / len(panels)
        for number, (name, rows) in enumerate(panels):
            axis = style.axes(page, _LEFT + number * (width + _GAP), _BOTTOM, width, _ROW * len(rows))
            _panel(axis, name, rows, names=number == 0)
        _key(page, height)
        return style.finish(page, sheet, (44, 74))


def _panel(axis: style.Axes, name: str, rows: list[Row], names: bool) -> None:
    axis.set_xlim(0, 100)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_title(name, loc="left", fontsize=17, fontweight="bold", pad=12)
    axis.set_xticks([0, 25, 50, 75, 100], ["0", "25", "50", "75", "100 %"])
    axis.tick_params("both", length=0, pad=8)
    axis.set_yticks(range(len(rows)), [look.name for look, _ in rows] if names else [""] * len(rows), fontsize=16)
    for y, (look, rates) in enumerate(rows):
        total = sum(rates.values())
        left = 0.0
        for kind in CLASSES:
            share = 100 * rates[kind] / total if total else 0.0
            axis.barh(
                y,
                share,
                0.66,
                left,
                color=_COLOURS[kind],
                hatch=_HATCHES.get(kind),
                edgecolor="white",
                linewidth=0.8,
                alpha=0.55 if look.is_null else 1,
            )
            left += share
        axis.text(
            102,
            y,
            f"{units.rate(total)}/s",
            va="center",
            fontsize=13.5,
            color=FAINT if look.is_null else INK,
            clip_on=False,
        )
    if names:
        style.name_rows(axis, [look for look, _ in rows])


def _key(page: style.Figure, height: int) -> None:
    axis = style.axes(page, _LEFT, height - 122, WIDTH - _LEFT - _RIGHT, 30)
    axis.set_axis_off()
    axis.set_xlim(0, WIDTH - _LEFT - _RIGHT)
    axis.set_ylim(0, 30)
    for place, kind in enumerate(CLASSES):
        x = place * 190
        axis.barh(15, 30, 20, x, color=_COLOURS[kind], hatch=_HATCHES.get(kind), edgecolor="white", linewidth=0.8)
        axis.text(x + 40, 15, kind, va="center", fontsize=14.5)
