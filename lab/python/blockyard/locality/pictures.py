"""The pictures: times across allocators, distances over the allocation's number, how often each distance came."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

from blockyard.locality.measure import Measured, Test
from blockyard.locality.tables import distances
from blockyard.report import style

_WIDTH = 1500
_PANEL_HEIGHT = 250
_MOST_BARS = 8
_SHORT_LABEL = 5  # characters
_FAR = 10_000_000  # bytes, from which on a distance is said in MiB or GiB

PICTURES = ("times", "distances", "buckets")


def draw(folder: Path, results: Mapping[str, Sequence[Measured]], test: Test | str) -> list[Path]:
    """The test is what was measured here, or a phrase that says where the results are from."""
    drawers = zip(PICTURES, (_times, _distances, _buckets), strict=True)
    return [path for name, drawer in drawers for path in style.save(drawer(results, test), folder / name)]


def _caption(test: Test | str, repeats: int) -> str:
    if isinstance(test, str):
        return test
    times = f"{repeats} repeats, " if repeats > 1 else ""
    state = ", heaps aged" if test.aged else ""
    return (
        f"{test.count} blocks of {test.size} bytes at alignment {test.align}{state}, {times}"
        "each allocator and repeat in a process of its own"
    )


def _times(results: Mapping[str, Sequence[Measured]], test: Test | str) -> Figure:
    names = list(results)
    height = 260 + 62 * len(names)
    page = style.figure(_WIDTH, height)
    style.put(page, 28, height - 44, "Time to allocate and to free one block", fontsize=22, weight="bold")
    repeats = len(next(iter(results.values())))
    passes = (("cold", 0), ("warm", 1)) if all(len(one.warm_allocate) for one in results[names[0]]) else (("", 0),)
    said = (
        "Bars: median over repeats; lines: least and most. Cold is the first pass of a process, warm the median of "
        "its later ones."
        if len(passes) > 1
        else "One pass."
    )
    style.foot(page, f"{_caption(test, repeats)}\n{said}")
    for place, (title, pick) in enumerate(
        (
            ("allocate", lambda one: (one.cold_allocate, one.warm_allocate)),
            ("free", lambda one: (one.cold_free, one.warm_free)),
        )
    ):
        axis = style.axes(page, 210 + place * 650, 130, 590, height - 250)
        axis.set_title(title, loc="left")
        for offset, (label, index) in enumerate(passes):
            samples = [
                [float(np.median(pick(one)[index])) / len(one.addresses) for one in results[name]] for name in names
            ]
            middle = np.array([np.median(values) for values in samples])
            spread = np.array([[m - min(values), max(values) - m] for m, values in zip(middle, samples, strict=True)]).T
            rows = np.arange(len(names)) + (offset - (len(passes) - 1) / 2) * 0.38
            whiskers = {"xerr": spread, "error_kw": {"ecolor": style.INK, "elinewidth": 1.2, "capsize": 3}}
            axis.barh(rows, middle, height=0.34, color=style.colour(offset), label=label, **whiskers)
            for at, value, high in zip(rows, middle, middle + spread[1], strict=True):
                _note(axis, f"{value:.2f}" if value < 10 else f"{value:.0f}", (high, at), (6, 0), va="center")
        axis.set_yticks(range(len(names)), names if place == 0 else [""] * len(names))
        axis.invert_yaxis()
        axis.set_xscale("log")
        low, high = axis.get_xlim()
        axis.set_xlim(low, high * 2.2)
        axis.set_xlabel("ns per block, logarithmic")
        axis.grid(True, axis="x", color=style.GRID)
        if place == 1 and len(passes) > 1:
            axis.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
    return page


def _note(axis: Axes, words: str, at: tuple[float, float], points: tuple[float, float], **look: object) -> None:
    """So many points from a place."""
    axis.annotate(words, at, xytext=points, textcoords="offset points", fontsize=12, **look)


def _panels(results: Mapping[str, Sequence[Measured]], title: str, caption: str) -> tuple[Figure, dict[str, Axes]]:
    """A page with two columns of panels, one for each allocator."""
    lines = (len(results) + 1) // 2
    height = 170 + lines * _PANEL_HEIGHT
    page = style.figure(_WIDTH, height)
    style.put(page, 28, height - 44, title, fontsize=22, weight="bold")
    style.foot(page, caption)
    panels = {}
    for place, name in enumerate(results):
        line, column = divmod(place, 2)
        bottom = height - 35 - (line + 1) * _PANEL_HEIGHT
        axis = style.axes(page, 150 + column * 740, bottom, 570, _PANEL_HEIGHT - 95)
        axis.set_title(name, loc="left", fontsize=16)
        panels[name] = axis
    return page, panels


def _distances(results: Mapping[str, Sequence[Measured]], test: Test | str) -> Figure:
    page, panels = _panels(
        results,
        "Distance of each block from the one before",
        _caption(test, 1) + ". First pass of the first repeat. Triangles stand at the edge for distances beyond it.",
    )
    for place, (name, axis) in enumerate(panels.items()):
        apart = distances(results[name][0], _size(test))
        low, high = _window(apart)
        unit, unit_name = _unit(max(-low, high))
        numbers = np.arange(2, len(apart) + 2)
        axis.plot(numbers, np.clip(apart, low, high) / unit, ".", color=style.colour(place), markersize=3)
        for edge, beyond, marker, drop in ((high, apart > high, "^", -16), (low, apart < low, "v", 8)):
            if not beyond.any():
                continue
            rim = np.full(beyond.sum(), edge / unit)
            axis.plot(numbers[beyond], rim, marker, color=style.INK, markersize=7, clip_on=False)
            at = int(np.argmax(np.abs(np.where(beyond, apart, 0))))
            more = f", the furthest of {beyond.sum()}" if beyond.sum() > 1 else ""
            right = at > len(apart) / 2
            _note(
                axis,
                f"{apart[at]:+,} at block {at + 2}{more}",
                (numbers[at], edge / unit),
                (-10 if right else 10, drop),
                ha="right" if right else "left",
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
            )
        margin = (high - low) * 0.06
        axis.set_ylim((low - margin) / unit, (high + margin) / unit)
        axis.set_xlim(0, len(apart) + 2)
        axis.set_ylabel(unit_name, fontsize=13)
        axis.yaxis.set_major_locator(MaxNLocator(4))
        axis.yaxis.set_major_formatter("{x:,.0f}")
        axis.grid(True, color=style.GRID)
        axis.tick_params(labelsize=12)
    return page


def _size(test: Test | str) -> int:
    """Of a block; files give distances and no sizes."""
    return 0 if isinstance(test, str) else test.size


def _window(apart: np.ndarray) -> tuple[float, float]:
    """What the axis shows in full: the bulk, with some room, so that one jump does not flatten the rest."""
    low, high = np.percentile(apart, [2, 98])
    room = max(high - low, 16.0)
    return min(float(low), 0.0) - room * 0.5, float(high) + room * 0.8


def _unit(furthest: float) -> tuple[int, str]:
    """What an axis counts in, so that its labels stay short."""
    if furthest < _FAR:
        return 1, "bytes"
    return (2**20, "MiB") if furthest < 10_000 * 2**20 else (2**30, "GiB")


def _short(distance: int) -> str:
    """Bytes; a jump to another mapping in whole MiB or GiB, which is all that is to be seen of it."""
    if abs(distance) < _FAR:
        return f"{distance:,}"
    mebibytes = distance / 2**20
    return f"{mebibytes:,.0f} MiB" if abs(mebibytes) < 10_000 else f"{mebibytes / 1024:,.0f} GiB"


def _buckets(results: Mapping[str, Sequence[Measured]], test: Test | str) -> Figure:
    page, panels = _panels(
        results,
        "How often each distance came",
        _caption(test, 1) + f". At most the {_MOST_BARS} most common ones; logarithmic.",
    )
    for place, (name, axis) in enumerate(panels.items()):
        values, counts = np.unique(distances(results[name][0], _size(test)), return_counts=True)
        most = np.argsort(-counts, kind="stable")[:_MOST_BARS]
        most = most[np.argsort(values[most])]
        axis.bar(range(len(most)), counts[most], color=style.colour(place), width=0.6)
        for at, count in enumerate(counts[most]):
            _note(axis, str(count), (at, count), (0, 3), ha="center")
        labels = [_short(int(value)) for value in values[most]]
        # Long ones stand askew below their bars: side by side they would run into each other.
        long = max(map(len, labels)) > _SHORT_LABEL
        askew = {"rotation": 25, "ha": "right", "rotation_mode": "anchor"} if long else {}
        axis.set_xticks(range(len(most)), labels, fontsize=11, **askew)
        axis.set_yscale("log")
        axis.set_ylim(0.7, max(counts.max() * 4, 20))
        axis.yaxis.set_major_formatter("{x:,.0f}")
        # Where an axis spans little, the logarithm's minor ticks get labels too, on top of each other.
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.set_xlim(-0.7, max(len(most), 3) - 0.3)
        axis.tick_params(axis="y", labelsize=12)
        if len(values) > _MOST_BARS:
            rest = int(counts.sum() - counts[most].sum())
            more = f"and {len(values) - _MOST_BARS} more distances, {rest} blocks"
            _note(axis, more, (1, 1), (0, 6), xycoords="axes fraction", ha="right", color=style.FAINT)
    return page
