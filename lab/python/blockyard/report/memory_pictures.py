"""Memory pictures: resident and live bytes through the run, and the price of a short tail in memory (Pareto)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, MultipleLocator, NullFormatter

from blockyard import units
from blockyard.analysis.memory import MemorySeries, ParetoPoint
from blockyard.report import style
from blockyard.report.style import FAINT, INK, Look

WIDTH = 1600
_LEFT, _RIGHT, _PANEL, _GAP, _BOTTOM, _TOP = 138, 232, 420, 84, 128, 128
_FAULTS, _FEW_FAULTS = 200, 100

Looks = Mapping[str, Look]
"""By the allocator's name."""


def over_time(sheet: style.Sheet, found: Sequence[MemorySeries], looks: Looks) -> list[Path]:
    """Resident bytes, a line an allocator, live bytes shaded; below, page faults per second."""
    height = _BOTTOM + _TOP + _PANEL + _GAP + _FAULTS
    page = style.figure(WIDTH, height)
    axis = style.axes(page, _LEFT, _BOTTOM + _GAP + _FAULTS, WIDTH - _LEFT - _RIGHT, _PANEL)
    times = found[0].times_ns / 1e9
    axis.fill_between(times, found[0].live, color="#e8ebef", zorder=0, linewidth=0)
    axis.plot(times, found[0].live, color=FAINT, linewidth=1.2, linestyle=(0, (4, 2)), zorder=1)
    lines = []
    for one in found:
        look = looks[one.allocator]
        axis.plot(times, one.resident, **look.line)
        lines.append((look, float(one.resident[-1])))
    axis.set_ylim(0, max(float(max(one.resident.max() for one in found)), float(found[0].live.max())) * 1.06 or 1)
    _byte_axis(axis)
    lines.append((Look("live", FAINT, False, True), float(found[0].live[-1])))
    top = axis.get_ylim()[1]
    style.label_ends(axis, [(look, end / top) for look, end in lines], 25 / _PANEL, 1, 1.003)
    axis.set_ylabel("resident", labelpad=6)
    _time_axis(axis, times)
    below = style.axes(page, _LEFT, _BOTTOM, WIDTH - _LEFT - _RIGHT, _FAULTS)
    for one in found:
        line = looks[one.allocator].line
        below.plot(times, one.faults_per_s, **{**line, "linewidth": line["linewidth"] / 2})
    below.set_yscale("symlog", linthresh=_FEW_FAULTS)
    # Up to a labelled mark, also where nothing faulted.
    below.set_ylim(0, max(below.get_ylim()[1], _FEW_FAULTS))
    below.yaxis.grid(True, color=style.GRID)
    below.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    below.yaxis.set_minor_formatter(NullFormatter())
    below.tick_params("y", length=0)
    below.set_ylabel("page faults/s", labelpad=6)
    _time_axis(below, times)
    below.set_xlabel("time since the replay's clock started (s)", labelpad=8)
    return style.finish(page, sheet, (42, 70))


def pareto(sheet: style.Sheet, points: Sequence[ParetoPoint], looks: Looks) -> list[Path]:
    """A dot an allocator; a line joins those that nobody beats in both."""
    height = 760
    page = style.figure(WIDTH, height)
    axis = style.axes(page, _LEFT, _BOTTOM, WIDTH - _LEFT - 90, height - _BOTTOM - 120)
    tails, peaks = ([getattr(point, field) for point in points] for field in ("p999_ns", "peak"))
    style.latency_axis(axis, 10 ** np.floor(np.log10(min(tails) * 0.8)), max(tails) * 2, 0.0)
    span = max(max(peaks) - min(peaks), max(peaks) * 0.05)
    axis.set_xlim(max(min(peaks) - span * 0.1, 0), max(peaks) + span * 0.14)
    best = sorted((point.peak, point.p999_ns) for point in points if point.best)
    axis.step(*zip(*best, strict=True), where="post", color=FAINT, linewidth=1.4, linestyle=(0, (4, 2)), zorder=1)
    for point in points:
        look = looks[point.allocator]
        axis.plot([point.peak] * 2, point.ends_ns, color=look.colour, linewidth=1.6, alpha=0.6, zorder=2)
        mark, edge = ("D", INK) if point.best else ("o", "white")
        pen = {"color": look.colour, "markersize": 12, "markeredgecolor": edge, "zorder": look.layer}
        axis.plot([point.peak], [point.p999_ns], mark, **pen)
    axis.xaxis.set_major_locator(MultipleLocator(_byte_step(*axis.get_xlim())))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: units.size(value)))
    axis.xaxis.grid(True, color=style.GRID)
    axis.tick_params("x", length=0, pad=8)
    axis.set_xlabel("peak resident memory", labelpad=8)
    axis.set_ylabel("p99.9 of malloc and first touch", labelpad=6)
    _name_points(axis, points, looks)
    return style.finish(page, sheet, (42, 70))


def _name_points(axis: style.Axes, points: Sequence[ParetoPoint], looks: Looks) -> None:
    """Each name beside its mark, where it covers no other name or mark."""
    marks = [tuple(place) for place in axis.transData.transform([(point.peak, point.p999_ns) for point in points])]
    halo = [withStroke(linewidth=4, foreground="white")]
    texts = [
        axis.text(0, 0, look.name, transform=None, zorder=4, path_effects=halo, **look.words)
        for look in (looks[point.allocator] for point in points)
    ]
    sizes = [(box.width, box.height) for box in (text.get_window_extent() for text in texts)]
    frame = axis.get_window_extent()
    for text, mark, size, corner in zip(
        texts, marks, sizes, style.beside(marks, sizes, (frame.x0, frame.y0, frame.x1, frame.y1)), strict=True
    ):
        text.set_position(corner)
        text.set_verticalalignment("bottom")
        middle = corner[1] + size[1] / 2
        if abs(middle - mark[1]) > size[1]:
            edge = corner[0] if corner[0] > mark[0] else corner[0] + size[0]
            axis.plot([mark[0], edge], [mark[1], middle], transform=None, color=FAINT, linewidth=0.8, zorder=1)


def _byte_step(low: float, high: float) -> float:
    """A power of two, in bytes, that gives at most seven marks."""
    return 2.0 ** max(np.ceil(np.log2((high - low) / 6)), 0)


def _byte_axis(axis: style.Axes) -> None:
    axis.yaxis.set_major_locator(MultipleLocator(_byte_step(*axis.get_ylim())))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: "0" if value == 0 else units.size(value)))
    axis.yaxis.grid(True, color=style.GRID)
    axis.tick_params("y", length=0)


def _time_axis(axis: style.Axes, times: np.ndarray) -> None:
    axis.set_xlim(0, max(float(times[-1]), 1e-6))
    axis.tick_params("x", length=0, pad=8)
