"""The pictures of a trial: all frames by percentile, and every run's frames along its time."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from blockyard.analysis.distribution import Distribution
from blockyard.report import curves, style
from blockyard.report.style import Look, Sheet
from blockyard.trial.run import Run

_LEFT, _RIGHT, _PANEL, _GAP, _BOTTOM, _TOP = 118, 60, 220, 70, 110, 120


def draw(runs: Mapping[str, Sequence[Run]], folder: Path, title: str) -> list[Path]:
    """None without frames."""
    framed = {name: own for name, own in runs.items() if all(len(one.frames_ns) for one in own)}
    if not framed:
        return []
    title = textwrap.shorten(title, 90, placeholder=" ...")
    looks = {name: Look(name, style.colour(place), True, False) for place, name in enumerate(framed)}
    caption = "; ".join(f"{name}: {sum(len(one.frames_ns) for one in own):,} frames" for name, own in framed.items())
    lines = [(looks[name], _distribution(own)) for name, own in framed.items()]
    percentiles = Sheet(folder / "frames-by-percentile", "Frame times by percentile", title, caption)
    along = Sheet(
        folder / "frames-along-time", "Frame times along time", title, f"All runs above each other. {caption}"
    )
    return [*curves.draw(percentiles, [("frames", lines)]), *_along(along, framed, looks)]


def _distribution(runs: Sequence[Run]) -> Distribution:
    """In microseconds, which marks are good for."""
    frames = np.concatenate([one.frames_ns for one in runs])
    return Distribution(*np.unique(np.maximum(frames // 1000, 1).astype(np.uint32), return_counts=True), 1e-3)


def _along(sheet: Sheet, framed: Mapping[str, Sequence[Run]], looks: Mapping[str, Look]) -> list[Path]:
    height = _BOTTOM + _TOP + len(framed) * _PANEL + (len(framed) - 1) * _GAP
    page = style.figure(curves.WIDTH, height)
    frames = np.concatenate([one.frames_ns for own in framed.values() for one in own])
    last = max(float(one.frames_ns.sum()) for own in framed.values() for one in own) / 1e9
    for number, (name, own) in enumerate(framed.items()):
        bottom = _BOTTOM + (len(framed) - 1 - number) * (_PANEL + _GAP)
        axis = style.axes(page, _LEFT, bottom, curves.WIDTH - _LEFT - _RIGHT, _PANEL)
        style.latency_axis(axis, max(float(frames.min()), 1e3) / 1.25, max(float(frames.max()), 1e5) * 1.25, 1e3)
        axis.set_xlim(0, last)
        axis.text(0.0, 1.05, name, transform=axis.transAxes, fontsize=17, fontweight="bold")
        axis.set_ylabel("frame", labelpad=6)
        for one in own:
            axis.plot(
                np.cumsum(one.frames_ns) / 1e9, one.frames_ns, ".", color=looks[name].colour, markersize=2, alpha=0.4
            )
    axis.set_xlabel("seconds since the first frame", labelpad=8)
    return style.finish(page, sheet, (42, 70))
