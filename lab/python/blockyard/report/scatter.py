"""The density scatter: every event of one allocator, time across, latency up, hue its size, brightness how many."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from matplotlib.artist import Artist
from matplotlib.image import AxesImage

from blockyard import units
from blockyard.analysis import causes, passes
from blockyard.analysis.distribution import SATURATED, Distribution
from blockyard.analysis.latency import P50, P99, P999, P9999
from blockyard.report import style
from blockyard.report.style import FAINT, INK

WIDTH, HEIGHT = 1600, 900
_LEFT, _BOTTOM, _RIGHT, _TOP = 118, 128, 232, 96
CELL = 2
"""Pixels of a cell's side: a lone event must be seen."""
COLUMNS = (WIDTH - _LEFT - _RIGHT) // CELL
ROWS = (HEIGHT - _BOTTOM - _TOP) // CELL
FRAME = (_LEFT, _TOP, COLUMNS * CELL, ROWS * CELL)
"""The density's pixels: left, top, width, height."""
MOST_MARKS = 4000
"""More marks than this would be a blot; the slowest are drawn and the caption says so."""
_SHADES = 64


@dataclass(frozen=True)
class Scatter:
    """One picture's content. `times_s` and `latencies_ns` are the frame's edges, `step_ns` the clock's step: all three
    of a section, so that its pictures can be laid side by side."""

    sheet: style.Sheet
    bins: passes.Bins
    distribution: Distribution
    times_s: tuple[float, float]
    latencies_ns: tuple[float, float]
    step_ns: float


def marks_from(distribution: Distribution) -> int:
    """Ticks from which an event is drawn as a mark: p99.99, by nearest rank whatever the number of samples."""
    return distribution.at_rank(P9999.rank(distribution.samples)) if distribution.samples else SATURATED


def draw(scatter: Scatter) -> list[Path]:
    """Writes the picture (in an SVG the density is embedded as an image, so that it stays small)."""
    stage = _stage(scatter.times_s, scatter.latencies_ns, scatter.step_ns)
    own = [*_marks(stage.axis, scatter), *_percentile_labels(stage.axis, scatter), *_words(stage.page, scatter)]
    stage.density.set_data(shades(scatter.bins))
    try:
        return style.save(
            stage.page, scatter.sheet.target, scatter.sheet.formats, stage.furniture, [*own, stage.density]
        )
    finally:
        for artist in own:
            artist.remove()


@dataclass(frozen=True)
class _Stage:
    """What the pictures of one section have in common, drawn once by each process that draws them: text takes longer
    than eleven million points."""

    page: style.Figure
    axis: style.Axes
    density: AxesImage
    furniture: style.Furniture


@lru_cache(maxsize=1)
def _stage(times_s: tuple[float, float], latencies_ns: tuple[float, float], step_ns: float) -> _Stage:
    page = style.figure(WIDTH, HEIGHT)
    axis = style.axes(page, _LEFT, _BOTTOM, COLUMNS * CELL, ROWS * CELL)
    style.latency_axis(axis, *latencies_ns, step_ns)
    axis.set_xlim(*times_s)
    axis.xaxis.grid(True, color=style.MINOR_GRID)
    axis.tick_params("x", length=0, pad=8)
    axis.set_xlabel("time since the replay's clock started (s)", labelpad=8)
    axis.set_ylabel("latency", labelpad=6)
    axis.autoscale(False)
    density = _density(page)
    _size_bar(page)
    return _Stage(page, axis, density, style.Furniture())


def shades(bins: passes.Bins) -> np.ndarray:
    """RGBA of the cells, upper row first: hue by mean size, darker the more events; empty cells are clear."""
    counts = bins.counts
    most = max(int(counts.max()), 2)
    level = np.log(counts, out=np.zeros(counts.shape, np.float32), where=counts > 0) / np.float32(np.log(most))
    low, high = style.SIZE_RANGE
    hue = np.clip((bins.mean_log2_size - low) * (255 / (high - low)), 0, 255).astype(np.uint8)
    image = _PALETTE[hue, (level * (_SHADES - 1)).astype(np.uint8)]
    image[counts == 0] = 0
    return np.ascontiguousarray(image[::-1])


def _palette() -> np.ndarray:
    """[hue, shade] -> RGBA: a lone event pale but plain, the full colour at two thirds, dark where they crowd."""
    colours = style.size_colours()[:, None, :]
    shade = np.linspace(0, 1, _SHADES)[None, :, None]
    pale = np.interp(shade, (0, 0.65, 1), (0.55, 0, 0))
    dark = np.interp(shade, (0, 0.65, 1), (0, 0, 0.55))
    rgb = (colours * (1 - pale) + pale) * (1 - dark)
    return (np.concatenate([rgb, np.ones((*rgb.shape[:2], 1))], axis=2) * 255).round().astype(np.uint8)


_PALETTE = _palette()


def _density(page: style.Figure) -> AxesImage:
    # Axes of its own without scales: the cells lie on whole pixels and nothing resamples them.
    axis = style.axes(page, _LEFT, _BOTTOM, COLUMNS * CELL, ROWS * CELL)
    axis.set_axis_off()
    image = axis.imshow(
        np.zeros((ROWS, COLUMNS, 4), np.uint8), aspect="auto", interpolation="none", extent=(0, 1, 0, 1)
    )
    axis.set_xlim(0, 1)
    axis.set_ylim(0, 1)
    return image


def _words(page: style.Figure, scatter: Scatter) -> list[Artist]:
    return [
        style.put(page, 28, HEIGHT - 42, scatter.sheet.title, fontsize=22, fontweight="bold"),
        style.subtitle(page, 72, f"{scatter.sheet.subtitle}; {_shown(scatter)}", WIDTH - 440),
        style.foot(page, scatter.sheet.caption),
    ]


def _shown(scatter: Scatter) -> str:
    """Of the marks."""
    marks = scatter.bins.marks
    total = len(marks)
    if total == 0:
        return "no event stands out"
    kept = "" if total <= MOST_MARKS else f", the slowest {MOST_MARKS:,} drawn"
    since = units.duration(marks["ticks"].min() / scatter.distribution.ticks_per_ns)
    crosses = "; ×: machine" if (_drawn(scatter)["cause"] & causes.MACHINE).any() else ""
    return f"circles: {total:,} events from p99.99 ({since}){crosses}{kept}"


def _marks(axis: style.Axes, scatter: Scatter) -> list[Artist]:
    marks = _drawn(scatter)
    if not len(marks):
        return []
    low, high = style.SIZE_RANGE
    sizes = np.log2(np.maximum(marks["size"], 1).astype(np.float64))
    hue = np.clip((sizes - low) * (255 / (high - low)), 0, 255).astype(np.uint8)
    times = marks["time"] / 1e9
    latencies = np.clip(marks["ticks"] / scatter.distribution.ticks_per_ns, *scatter.latencies_ns)
    machine = (marks["cause"] & causes.MACHINE) != 0
    own, place = ~machine, {"zorder": 5, "clip_on": False}
    colours = style.size_colours()[hue[own]]
    return [
        axis.scatter(times[own], latencies[own], s=44, c=colours, edgecolors=INK, linewidths=0.7, **place),
        axis.scatter(times[machine], latencies[machine], s=34, c=FAINT, marker="x", linewidths=1.3, **place),
    ]


def _drawn(scatter: Scatter) -> np.ndarray:
    """The slowest marks, the slowest last."""
    marks = scatter.bins.marks
    return marks[np.argsort(marks["ticks"])][-MOST_MARKS:]


def _percentile_labels(axis: style.Axes, scatter: Scatter) -> list[Artist]:
    """Names the tail at the right edge, where the eye ends."""
    found = [(percentile.label, scatter.distribution.percentile(percentile)) for percentile in (P50, P99, P999, P9999)]
    found.append(("worst", scatter.distribution.worst))
    known = [(label, value) for label, value in found if value is not None]
    low, high = np.log10(scatter.latencies_ns)
    heights = [(np.log10(max(value.value, scatter.latencies_ns[0])) - low) / (high - low) for _, value in known]
    places = style.spread(heights, 26 / (ROWS * CELL), 0.0, 1.0)
    drawn: list[Artist] = []
    pen = {"transform": axis.transAxes, "color": FAINT, "linewidth": 1, "clip_on": False}
    words = {"va": "center", "fontsize": 13.5}
    for (label, value), height, place in zip(known, heights, places, strict=True):
        drawn += axis.plot([1.003, 1.012, 1.022], [height, height, place], **pen)
        drawn.append(style.say(axis, 1.026, place, label, color=FAINT, **words))
        drawn.append(style.say(axis, 1.089, place, units.latency(value), fontweight="bold", **words))
    return drawn


def _size_bar(page: style.Figure) -> None:
    """The key to the hues, above the picture at the right."""
    width, left, bottom = 330, WIDTH - 330 - 40, HEIGHT - 56
    axis = style.axes(page, left, bottom, width, 14)
    axis.imshow(style.size_colours()[None], aspect="auto", extent=(*style.SIZE_RANGE, 0, 1), interpolation="bilinear")
    axis.set_yticks([])
    axis.set_xticks([4, 10, 15, 20, 26], ["16 B", "1 KiB", "32 KiB", "1 MiB", "64 MiB"], fontsize=11.5)
    axis.tick_params("x", length=3, pad=2, color=FAINT)
    for side in ("left", "bottom"):
        axis.spines[side].set_visible(False)
    style.put(page, left - 12, bottom + 1, "block size", fontsize=13, ha="right")
    style.put(page, left, bottom + 22, "darker: more events", fontsize=11.5, color=FAINT)
