"""The percentile plot: every allocator's latency by percentile, the tail beyond p90 given half the width."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from blockyard import units
from blockyard.analysis.distribution import Distribution
from blockyard.analysis.latency import SAMPLES_BEYOND
from blockyard.report import style
from blockyard.report.style import FAINT, Look

WIDTH = 1600
_LEFT, _RIGHT, _PANEL, _GAP, _BOTTOM, _TOP = 118, 262, 440, 92, 128, 128
_NINES = 5
"""The tail shows p90 to p99.999: five equal steps, and the worst at the edge."""

Line = tuple[Look, Distribution]


def place(share: float | np.ndarray) -> np.ndarray:
    """Where a percentile (0..1) stands across: linear up to p90 in the left half, each further nine an equal step."""
    share = np.asarray(share, float)
    beyond = np.maximum(1 - share, 10.0 ** -(_NINES + 1))
    return np.where(share <= 0.9, share / 0.9 * 0.5, 0.5 + (-1 - np.log10(beyond)) / _NINES * 0.5)


def draw(sheet: style.Sheet, panels: Sequence[tuple[str, list[Line]]]) -> list[Path]:
    """One panel an operation, above each other, sharing the percentiles."""
    height = _BOTTOM + _TOP + len(panels) * _PANEL + (len(panels) - 1) * _GAP
    page = style.figure(WIDTH, height)
    for number, (name, lines) in enumerate(panels):
        bottom = _BOTTOM + (len(panels) - 1 - number) * (_PANEL + _GAP)
        axis = style.axes(page, _LEFT, bottom, WIDTH - _LEFT - _RIGHT, _PANEL)
        _panel(axis, name, lines)
    axis.set_xlabel("percentile of events (linear up to p90, then one step for each further nine)", labelpad=8)
    return style.finish(page, sheet, (42, 70))


def _panel(axis: style.Axes, name: str, lines: list[Line]) -> None:
    extremes = [value for _, found in lines for value in (found.best, found.worst) if value is not None]
    step = max(found.step_ns for _, found in lines)
    low = style.lower_edge(step, min(value.value for value in extremes))
    high = max(value.value for value in extremes) * 1.25
    style.latency_axis(axis, low, max(high, low * 100), step)
    axis.set_xlim(0, 1.0)
    shares = (0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
    axis.set_xticks(place(np.array(shares)), "0 25 50 75 p90 p99 p99.9 p99.99 p99.999 worst".split())
    axis.xaxis.grid(True, color=style.GRID)
    axis.tick_params("x", length=0, pad=8)
    axis.axvspan(0.5, 1.0, color="#f6f7f9", zorder=-1)
    axis.set_ylabel("latency", labelpad=6)
    style.name_panel(axis, name, 1.03)
    ends = [_line(axis, *line) for line in lines]
    _labels(axis, lines, ends)


def _line(axis: style.Axes, look: Look, found: Distribution) -> float:
    """Draws as far as the samples support, then a dotted step to the worst; returns the worst in ns."""
    shares, latencies = curve(found, axis.get_ylim()[0])
    dash = (0, (2, 2)) if look.is_null else "-"
    axis.plot(place(shares), latencies, linestyle=dash, solid_capstyle="round", **look.line)
    worst = max(found.worst.value, axis.get_ylim()[0])
    thin = {**look.line, "linewidth": 1.2}
    axis.plot([float(place(shares[-1])), 1.0], [latencies[-1], worst], linestyle=(0, (1, 2.2)), **thin)
    mark = {"color": look.colour, "markersize": 7, "markeredgecolor": "white", "zorder": look.layer + 2}
    axis.plot([1.0], [worst], "D", clip_on=False, **mark)
    return worst


def curve(found: Distribution, low_ns: float) -> tuple[np.ndarray, np.ndarray]:
    """Percentiles (0..1) and latencies up to the last percentile that the samples support, by nearest rank."""
    last = max(0.0, 1 - SAMPLES_BEYOND / found.samples)
    shares = np.concatenate([np.linspace(0, 0.9, 181), 1 - 10.0 ** np.linspace(-1, -_NINES, 241)])
    shares = shares[shares <= last]
    if not len(shares):
        shares = np.zeros(1)
    ranks = np.maximum(np.ceil(shares * found.samples - 1e-6), 1).astype(np.uint64)
    ticks = found.ticks[np.searchsorted(np.cumsum(found.counts, dtype=np.uint64), ranks)]
    return shares, np.maximum(ticks / found.ticks_per_ns, low_ns)


def _labels(axis: style.Axes, lines: list[Line], ends: list[float]) -> None:
    low, high = np.log10(axis.get_ylim())
    heights = [(look, (np.log10(end) - low) / (high - low)) for (look, _), end in zip(lines, ends, strict=True)]
    places = style.label_ends(axis, heights, 27 / _PANEL, 1.02, 1.008)
    words = {"va": "center", "ha": "right", "fontsize": 12.5, "color": FAINT}
    for (_, found), where in zip(lines, places, strict=True):
        style.say(axis, 1.2, where, units.latency(found.worst), **words)
